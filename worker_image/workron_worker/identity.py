"""The name of a worker, which proves its death, and the records of workers on this machine.

A name is `host:pid:start`. The host part differs for different machines, boots of a machine and
containers that share a host name. So if no process of that pid and start time exists here, the
worker is dead and not only out of sight. The worker of a pod is named after the pod's uid instead:
nothing on this machine proves its death, but a newer session of the same name does.

Each worker records its name in a file beside its folder. The next worker of the same user reads
these records and cleans up after those that are dead (`workron_runner.boot_cleanup`).
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
from collections.abc import Iterator
from typing import Final

import structlog

from workron_runner import boot_cleanup, workspace

_PROC: Final = pathlib.Path("/proc")
_START_FIELD: Final = 19
"""Where `/proc/PID/stat` has the start time, counted from behind the command's name."""
_ENDED_STATES: Final = frozenset("ZX")
"""Zombies: processes that have ended and were not reaped."""


def process_name() -> str:
    """Return the name of a worker in this process."""
    return f"{_host()}:{os.getpid()}:{_start_of(os.getpid()) or 0}"


def pod_name(uid: str) -> str:
    """Return the name of a pod's worker; ValueError if that is not a uid."""
    return str(uuid.UUID(uid))


def is_dead(name: str) -> bool:
    """Whether that worker was a process of this machine and has ended; False if in doubt."""
    host, _, rest = name.partition(":")
    pid, _, start = rest.partition(":")
    # Without these ids many machines may have the same host part.
    if not any(_host_ids()) or host != _host() or not (pid.isdecimal() and start.isdecimal()):
        return False
    # 0: the worker did not know its own start time.
    return int(start) != 0 and _start_of(int(pid)) != int(start)


def _host() -> str:
    digest = hashlib.sha256("/".join(_host_ids()).encode()).hexdigest()[:8]
    return f"{socket.gethostname()}-{digest}"


def _host_ids() -> list[str]:
    try:
        pid_namespace = str((_PROC / "self/ns/pid").readlink())
    except OSError:
        pid_namespace = ""
    return [_read("sys/kernel/random/boot_id"), pid_namespace]


def _start_of(pid: int) -> int | None:
    """Return the start time of a process in ticks; None if it does not exist or is a zombie."""
    # The command's name is in parentheses and may itself contain parentheses.
    fields = _read(f"{pid}/stat").rpartition(")")[2].split()
    if len(fields) <= _START_FIELD or fields[0] in _ENDED_STATES:
        return None
    return int(fields[_START_FIELD])


def _read(path: str) -> str:
    try:
        return (_PROC / path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


_log = structlog.get_logger(__name__)
_SUFFIX: Final = ".worker"
_MAX_RECORD_BYTES: Final = 1_000


@contextlib.contextmanager
def recorded_worker(boot: uuid.UUID) -> Iterator[None]:
    """Record this worker while the context is active."""
    record = workspace.boot_folder(boot).with_suffix(_SUFFIX)
    try:
        record.write_text(process_name(), encoding="utf-8")
    except OSError as error:
        _log.warning(
            "cannot record worker, leftovers of a kill will not be cleaned up", error=error.strerror
        )
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            record.unlink()


def clean_up_dead_workers() -> None:
    """Clean up after the dead workers of this user, and delete their records."""
    for record in pathlib.Path(tempfile.gettempdir()).glob(f"workron-*{_SUFFIX}"):
        try:
            boot = uuid.UUID(record.stem.removeprefix("workron-"))
        except ValueError:
            continue
        name = _read_record(record)
        if name is None or not is_dead(name):
            continue
        result = boot_cleanup.clean_up_boot(boot)
        _log.warning("cleaned up after dead worker", worker=name, **result._asdict())
        if result.is_complete:
            with contextlib.suppress(OSError):
                record.unlink()


def _read_record(record: pathlib.Path) -> str | None:
    """Read a record of this user; one of another user could make us kill the wrong processes."""
    try:
        descriptor = os.open(record, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return None
        return os.read(descriptor, _MAX_RECORD_BYTES).decode(errors="replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)
