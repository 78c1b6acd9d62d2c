"""How the commands of a worker are kept apart from each other: what its options say, checked.

Called by `worker`. The runner checks it again, as it is the one that does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from workron.core import errors
from workron_runner import landlock, rights
from workron_runner.uids import Range
from workron_worker.runner_options import RunnerOptions

if TYPE_CHECKING:
    from collections.abc import Callable

Isolate = Annotated[
    bool,
    typer.Option("--isolate", help="Shut commands off from each other, with Landlock."),
]
Uids = Annotated[
    str | None,
    typer.Option(
        metavar="FIRST-LAST", help="Give each command a uid of its own out of these; needs root."
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(min=1, help="At most so many processes of one command; needs --uids."),
]


def read(
    *, is_isolating: bool, uids: str | None, processes: int | None, slots: int
) -> RunnerOptions:
    """Say what a runner is to be started with; InputError if this machine cannot do that."""
    if is_isolating and not landlock.is_there():
        raise errors.InputError(
            "--isolate needs a kernel with Landlock and its scopes: Linux 6.12 or newer"
        )
    if processes is not None and uids is None:
        raise errors.InputError("--processes needs --uids: the processes of a uid are counted")
    own = None if uids is None else _range(uids, slots)
    if processes is not None:
        _ask("--processes", rights.check_processes)
    return RunnerOptions(is_isolating, own, processes)


def _range(text: str, slots: int) -> Range:
    try:
        own = Range.parse(text)
    except ValueError:
        raise errors.InputError(
            f"--uids: {text!r} is no range of two or more uids that are not root's; write it like"
            " 100000-100099"
        ) from None
    if own.size <= slots:
        raise errors.InputError(
            f"--uids: {own} are {own.size} uids, and --slots {slots} need {slots + 1}: one for each"
            " command, and the first is the runner's own"
        )
    _ask("--uids", lambda: rights.check(own))
    return own


def _ask(option: str, check: Callable[[], None]) -> None:
    try:
        check()
    except rights.RightsError as error:
        raise errors.InputError(f"{option} {error}") from None
