"""Write the pages of the reference that are made from code, or with `--check` only compare them.

Called by `make generate`, and by `make check` with `--check`: exit code 1 says that a page is not
what the code says.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from docs import command_line, custom_resources, manifest, metrics, state_tables
from workron.core import states

_DOCS: Final = Path(__file__).parent

_STATES_PAGE: Final = """\
# States

<!-- Made by `make generate` from workron/core/states.py and verdict.py; edit those. -->

A job is in exactly one of seven states. Four of them are ends: a job that has reached one never
leaves it. The same words stand in the database, in a status, in a metric and on the command line.

```mermaid
{mermaid}
```

{meanings}

## Events

Every event of a job, and the state that follows it; a dash: it cannot happen then.

{transitions}

## What the end of an upstream means

A job is evaluated when all its upstreams have ended. It is queued if every one of them allows it.
Otherwise it is skipped, with the first of these reasons that applies: `UpstreamFailed`,
`UpstreamCancelled`, `NotNeeded`.

{conditions}

## What the end of a workflow or an array is

A workflow is Failed if one of its tasks Failed, otherwise Cancelled if it or a task was Cancelled,
otherwise Succeeded. So a cancelled workflow in which a task had failed is Failed. A failure does
not count if its task has `allowFailure: true`. Skipped tasks do not count either. `when` decides
what runs, and never how the workflow ends: a task with `when: Failed` does not change that another
task failed.

An array is Failed if more of its jobs Failed than `maxFailures` allows (by default none), otherwise
Cancelled if one was Cancelled, otherwise Skipped if one was Skipped, otherwise Succeeded. With
`maxFailures`, a job that was skipped because its upstream failed counts as a failure: if an array
has `each: true` to another one that may fail, give both a `maxFailures`.

Tasks of `finally` start when all other tasks have ended, and the workflow ends after them. A
cancellation does not stop them, unless it is forced (`forceCancel`, `workron cancel --force`, or a
second `workron cancel`) or their namespace is deleted. If one of them Failed, the workflow is
Failed. A workflow that is cancelled while they run is Cancelled, also if all tasks had succeeded.

A workflow whose `deadline` passes before its tasks have ended is cancelled, and is Failed with the
reason DeadlineExceeded. With `failFast`, the first failure that is not allowed cancels the other
tasks, also those that wait for a failure: use `finally` for these. The maintainer carries it out,
so a task may still start in the moment before. If an array has `maxFailures`, that is when the
array has ended as Failed.

A workflow that succeeded although jobs failed names them in the message of its status, such as
`2 failures allowed: lint, fetch/7`. `workron run` and `workron describe` print it.
"""


def states_page() -> str:
    """Render the page about states."""
    return _STATES_PAGE.format(
        mermaid=state_tables.mermaid(),
        meanings=state_tables.meanings(_member_docs(states.State)),
        transitions=state_tables.transitions(_member_docs(states.Event)),
        conditions=state_tables.conditions(),
    )


def _member_docs(enum: type[StrEnum]) -> Mapping[str, str]:
    # The line under a member is for readers of the code; at run time only the source has it.
    docs: dict[str, str] = {}
    member = ""
    for statement in ast.walk(ast.parse(inspect.getsource(enum))):
        match statement:
            case ast.Assign(value=ast.Constant(value=str(value))):
                member = value
            case ast.Expr(value=ast.Constant(value=str(text))) if member:
                docs[member] = text
    return docs


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "reference/states.md": states_page,
        "reference/manifest.md": manifest.page,
        "reference/custom-resources.md": custom_resources.page,
        "reference/command-line.md": command_line.page,
        "reference/metrics.md": metrics.page,
    }
)


def main(arguments: Sequence[str]) -> int:
    """Write what differs, or with `--check` name it; 1 if a check found something."""
    made = {_DOCS / name: page() for name, page in PAGES.items()}
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path} is not what the code says; run `make generate`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path])
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
