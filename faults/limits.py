"""Hard limits on the processes and the disk of a test.

A test is skipped with a reason if this machine does not support the limit.
"""

import contextlib
import os
import pathlib
import resource
import secrets
import subprocess
from collections.abc import Iterator

import pytest

MAX_PROCESSES = 300
_CGROUPS = pathlib.Path("/sys/fs/cgroup")
_VERSION_1 = "pids"


@contextlib.contextmanager
def processes(*pids: int, limit: int) -> Iterator[None]:
    """Limit the number of threads and descendants of these processes together."""
    folder = _group()
    if folder is None:
        _limit_user(pids, limit)
        yield
        return
    try:
        (folder / "pids.max").write_text(str(limit))
        for pid in pids:
            _move(str(pid), folder)
        yield
    finally:
        # A group can be removed only when it is empty: its members move to the parent.
        for member in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                _move(member, folder.parent)
        folder.rmdir()


def _move(pid: str, folder: pathlib.Path) -> None:
    (folder / "cgroup.procs").write_text(pid)


def _group() -> pathlib.Path | None:
    """Create a cgroup that limits processes, if that is possible."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        root = _CGROUPS / _VERSION_1 if controllers == _VERSION_1 else _CGROUPS
        folder = root / path.lstrip("/") / f"faults-{secrets.token_hex(4)}"
        if controllers in {_VERSION_1, ""} and _is_created(folder):
            return folder
    return None


def _is_created(folder: pathlib.Path) -> bool:
    try:
        folder.mkdir()
    except OSError:
        return False
    if (folder / "pids.max").exists():
        return True
    folder.rmdir()
    return False


def _limit_user(pids: tuple[int, ...], limit: int) -> None:
    """Limit the processes of this user instead; that limit does not apply to root."""
    if os.geteuid() == 0:
        pytest.skip("cannot create a cgroup for processes, and no other limit applies to root")
    own = sum(1 for one in pathlib.Path("/proc").glob("[0-9]*") if _is_own(one))
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_NPROC, (own + limit, own + limit))


def _is_own(path: pathlib.Path) -> bool:
    with contextlib.suppress(OSError):
        return path.stat().st_uid == os.getuid()
    return False


@contextlib.contextmanager
def small_disk(folder: pathlib.Path, size: int) -> Iterator[None]:
    """Mount a small file system in memory."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        folder.rmdir()
        pytest.skip("root cannot mount a file system on this machine")
    try:
        yield
    finally:
        unmount = ["umount", str(folder)]
        subprocess.run(unmount, check=True)


def free_bytes(folder: pathlib.Path) -> int:
    """Return the free bytes on the disk of a folder."""
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize
