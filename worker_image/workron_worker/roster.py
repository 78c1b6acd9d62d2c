"""Which workers run on this machine, so that the next one can end what a killed one left.

A runner that outlives its agent ends what it runs. When both are killed at once nobody does, and a
store cannot be asked by a worker that may call its own verbs alone. So each worker leaves a note
beside its folder while it runs. Called by `workron worker`.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import stat
import tempfile
import uuid
from typing import TYPE_CHECKING, Final

import structlog

from workron_runner import orphans, scratch
from workron_worker import identity

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = structlog.get_logger(__name__)
_SUFFIX: Final = ".worker"
_MOST_BYTES: Final = 1_000


@contextlib.contextmanager
def entered(boot: uuid.UUID) -> Iterator[None]:
    """Have this process be on the roster meanwhile."""
    note = scratch.folder(boot).with_suffix(_SUFFIX)
    try:
        note.write_text(identity.own_name(), encoding="utf-8")
    except OSError as error:
        _log.warning("nobody will end what a killed worker leaves", error=error.strerror)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            note.unlink()


def sweep() -> None:
    """End what is left of workers of this user that are gone, and strike them off."""
    for note in pathlib.Path(tempfile.gettempdir()).glob(f"workron-*{_SUFFIX}"):
        boot, name = _boot_of(note), _name_in(note)
        if boot is None or name is None or not identity.is_gone(name):
            continue
        swept = orphans.end(boot)
        _log.warning("a killed worker was swept up", worker=name, **swept._asdict())
        if swept.is_clear:
            with contextlib.suppress(OSError):
                note.unlink()


def _boot_of(note: pathlib.Path) -> uuid.UUID | None:
    try:
        return uuid.UUID(note.stem.removeprefix("workron-"))
    except ValueError:
        return None


def _name_in(note: pathlib.Path) -> str | None:
    """Read a note, if it is a file of ours: another user's could have us end what runs."""
    try:
        descriptor = os.open(note, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        there = os.fstat(descriptor)
        if not stat.S_ISREG(there.st_mode) or there.st_uid != os.geteuid():
            return None
        return os.read(descriptor, _MOST_BYTES).decode(errors="replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)
