"""Tells why a command was not started, and whose fault that is.

Called by `runner`; `workron_worker.runner_executor` makes the same of what a runner tells it, for
`workron_worker.judge`.
"""

from __future__ import annotations

import errno
from typing import Final, NamedTuple

_FAULTS_OF_THE_JOB: Final = frozenset(
    {
        errno.E2BIG,
        errno.EACCES,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOEXEC,
        errno.ENOTDIR,
    }
)
"""Errors of a start that lie in the command or its folder; all others lie in this machine."""


class Refusal(NamedTuple):
    """Why a command was not started."""

    is_fault_of_job: bool
    what: str
    where: str | None


def of(error: Exception) -> Refusal:
    """Judge the error of a start; a ValueError is about the words of the command."""
    if isinstance(error, ValueError):
        return Refusal(is_fault_of_job=True, what=str(error), where=None)
    if not isinstance(error, OSError):
        what = f"{type(error).__name__}: {error}"
        return Refusal(is_fault_of_job=False, what=what, where=None)
    where = error.filename if isinstance(error.filename, str) else None
    return Refusal(error.errno in _FAULTS_OF_THE_JOB, error.strerror or str(error), where)
