"""Renders README.md of the chart from the comments in values.yaml."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

import yaml

_PAGE: Final = """\
# Workron

<!-- Written by `make generate` from values.yaml and helm/readme.py; edit those. -->

Runs command-line jobs and DAGs of them on Kubernetes, with warm workers. Kubernetes 1.33 or newer,
Helm 4 or 3.

```sh
helm install workron helm/workron --namespace workron --create-namespace
helm test workron --namespace workron
```

[docs/how-to/install.md](../../docs/how-to/install.md) explains what this installs, with which
permissions, and how to upgrade and uninstall it. The default values install a trial: the database
is one pod with one volume and without a backup.

## Values

The chart rejects every key that is not listed here.

| key | default | |
|---|---|---|
{rows}
"""


class Value(NamedTuple):
    """One value of the chart, and the comment that describes it."""

    key: str
    default: str
    meaning: str


def page(values: str) -> str:
    """Render the page from the text of values.yaml."""
    rows = (f"| `{one.key}` | `{one.default}` | {one.meaning} |" for one in described(values))
    return _PAGE.format(rows="\n".join(rows))


def described(values: str) -> list[Value]:
    """List the keys with a comment above them; the keys below one are part of its default."""
    root = yaml.compose(values, yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise TypeError("values.yaml is not a mapping")
    return list(_walk(root, (), values.splitlines()))


def _walk(node: yaml.MappingNode, above: tuple[str, ...], lines: list[str]) -> Iterator[Value]:
    for key, value in node.value:
        path = (*above, key.value)
        if comment := _comment(lines, key.start_mark.line):
            default = yaml.SafeLoader("").construct_document(value)
            yield Value(".".join(path), json.dumps(default), comment)
        elif isinstance(value, yaml.MappingNode):
            yield from _walk(value, path, lines)
        else:
            raise ValueError(f"values.yaml: {'.'.join(path)} has no comment above it")


def _comment(lines: list[str], at: int) -> str:
    lines_above: list[str] = []
    while at and lines[at - 1].lstrip().startswith("#"):
        at -= 1
        lines_above.insert(0, lines[at].strip().removeprefix("#").strip())
    return " ".join(lines_above)
