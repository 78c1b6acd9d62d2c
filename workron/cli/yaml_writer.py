"""Writes objects as YAML that `workron` and kubectl read back as the same objects."""

from __future__ import annotations

from typing import Any, Final

import yaml

from workron.core.manifest import yaml_scalars

_WIDTH: Final = 2**16
"""Lines are not folded: a folded command is hard to read and to search."""


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - of the base
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature of the base
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif yaml_scalars.resolve_scalar(text) != text:
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump(value: Any) -> str:
    """Return a JSON value as YAML; texts of several lines are shown as such."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
