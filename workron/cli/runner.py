"""Where a worker has its runner from: it starts one, or one waits for it at a path.

Called by `worker`.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from typing import TYPE_CHECKING, Annotated, Final

import typer

from workron.cli import apart, crew
from workron.core import errors
from workron_worker import roster
from workron_worker.runner_path import AtPath
from workron_worker.runner_process import Children

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from workron_worker.runner_line import Runners

At = Annotated[
    pathlib.Path | None,
    typer.Option(
        "--runner",
        envvar="WORKRON_RUNNER",
        metavar="PATH",
        help="Where a runner waits, as in another container; default: it starts one.",
    ),
]
_LONGEST_PATH: Final = 107
"""Bytes of a socket's path, in Linux."""


def of(
    at: pathlib.Path | None,
    *,
    is_isolating: bool,
    uids: str | None,
    processes: int | None,
    slots: int,
) -> Runners:
    """Say where runners come from; InputError if it contradicts itself, or cannot be here."""
    if at is None:
        return Children(
            apart.read(is_isolating=is_isolating, uids=uids, processes=processes, slots=slots)
        )
    given = {"--isolate": is_isolating, "--uids": uids, "--processes": processes}
    if options := [name for name, value in given.items() if value]:
        raise errors.InputError(
            f"{options[0]} is for a runner that this worker starts; of the one that waits at {at}"
            f" it is asked where that is started: python3 -m workron_runner --socket {at}"
            f" {options[0]}"
        )
    if not 0 < len(os.fsencode(at.name)) <= len(os.fsencode(at)) <= _LONGEST_PATH:
        raise errors.InputError(
            f"--runner: {str(at)!r} is no path of a socket, which has at most {_LONGEST_PATH} bytes"
        )
    return AtPath(at)


def prepare(runners: Runners) -> None:
    """Clear away what killed workers left, if commands are to run beneath this process."""
    if not runners.are_awaited:
        crew.need_temporary_folder()
        roster.sweep()


@contextlib.contextmanager
def noted(runners: Runners, boot: UUID) -> Iterator[None]:
    """Leave a note for whoever clears up here, if commands run beneath this process."""
    with contextlib.nullcontext() if runners.are_awaited else roster.entered(boot):
        yield
