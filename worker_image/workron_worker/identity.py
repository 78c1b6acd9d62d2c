"""The name under which a worker of this machine registers, and what such a name still proves.

A name is `host:pid:start`. The host part tells apart what must not be mixed up: two machines, two
boots of one, two containers that share a host name. So a process of that pid and start that is
not found here is gone, and not only out of sight. A worker that is told the uid of its pod has that
for a name: this machine knows nothing of it, but a newer boot of the same name is proof of an older
one's death. Called by `workron.cli` and `roster`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import socket
import stat
import tempfile
import uuid
from typing import TYPE_CHECKING, Final

import structlog

from workron_runner import process_reaper, workspace

if TYPE_CHECKING:
    from collections.abc import Iterator


_PROC: Final = pathlib.Path("/proc")
_START_FIELD: Final = 19
"""Where `/proc/PID/stat` has the start time, counted from behind the command's name."""
_REMAINS: Final = frozenset("ZX")
"""States of a process that has ended and that nobody has waited for."""


def own_name() -> str:
    """Name this process."""
    return f"{_host()}:{os.getpid()}:{_start_of(os.getpid()) or 0}"


def pods_name(uid: str) -> str:
    """Name the one worker of a pod; ValueError: that is no uid of a pod."""
    return str(uuid.UUID(uid))


def is_gone(name: str) -> bool:
    """Whether that worker was a process of this machine and has ended; if in doubt, it has not."""
    host, _, rest = name.partition(":")
    pid, _, start = rest.partition(":")
    # Where no mark can be read, the host part may be that of many machines.
    if not any(_marks()) or host != _host() or not (pid.isdecimal() and start.isdecimal()):
        return False
    if int(start) == 0:
        return not _exists(int(pid))
    return _start_of(int(pid)) != int(start)


def _host() -> str:
    digest = hashlib.sha256("/".join(_marks()).encode()).hexdigest()[:8]
    return f"{socket.gethostname()}-{digest}"


def _marks() -> list[str]:
    return [_read("sys/kernel/random/boot_id"), _link("self/ns/pid")]


def _start_of(pid: int) -> int | None:
    """Tell when a process started, in ticks; None if there is none, or only its remains."""
    # The command's name stands in parentheses and may contain anything, parentheses too.
    fields = _read(f"{pid}/stat").rpartition(")")[2].split()
    if len(fields) <= _START_FIELD or fields[0] in _REMAINS:
        return None
    return int(fields[_START_FIELD])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _read(path: str) -> str:
    try:
        return (_PROC / path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return str((_PROC / path).readlink())
    except OSError:
        return ""


_log = structlog.get_logger(__name__)
_SUFFIX: Final = ".worker"
_MOST_BYTES: Final = 1_000


@contextlib.contextmanager
def registered_boot(boot: uuid.UUID) -> Iterator[None]:
    """Have this process be on the roster meanwhile."""
    note = workspace.workspace_folder(boot).with_suffix(_SUFFIX)
    try:
        note.write_text(own_name(), encoding="utf-8")
    except OSError as error:
        _log.warning("nobody will end what a killed worker leaves", error=error.strerror)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            note.unlink()


def sweep_dead_workers() -> None:
    """End what is left of workers of this user that are gone, and strike them off."""
    for note in pathlib.Path(tempfile.gettempdir()).glob(f"workron-*{_SUFFIX}"):
        boot, name = _boot_of(note), _name_in(note)
        if boot is None or name is None or not is_gone(name):
            continue
        swept = process_reaper.end_orphans(boot)
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
