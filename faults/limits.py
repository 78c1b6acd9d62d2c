"""Hard limits around what a test lets loose: of processes, and of a disk.

Where this machine sets neither, the test is skipped, and says so.
"""

import contextlib
import os
import pathlib
import resource
import secrets
import subprocess
from collections.abc import Iterator

import pytest

MOST_PROCESSES = 300
_CGROUPS = pathlib.Path("/sys/fs/cgroup")
_VERSION_1 = "pids"


@contextlib.contextmanager
def processes(*pids: int, most: int) -> Iterator[None]:
    """Let these processes have no more than so many threads and descendants together."""
    folder = _group()
    if folder is None:
        _limit_user(pids, most)
        yield
        return
    try:
        (folder / "pids.max").write_text(str(most))
        for pid in pids:
            _move(str(pid), folder)
        yield
    finally:
        # A group can be removed when it is empty: its own go back to where they came from.
        for member in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                _move(member, folder.parent)
        folder.rmdir()


def _move(pid: str, folder: pathlib.Path) -> None:
    (folder / "cgroup.procs").write_text(pid)


def _group() -> pathlib.Path | None:
    """Make a control group that bounds processes, if one can be made."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        root = _CGROUPS / _VERSION_1 if controllers == _VERSION_1 else _CGROUPS
        folder = root / path.lstrip("/") / f"faults-{secrets.token_hex(4)}"
        if controllers in {_VERSION_1, ""} and _is_made(folder):
            return folder
    return None


def _is_made(folder: pathlib.Path) -> bool:
    try:
        folder.mkdir()
    except OSError:
        return False
    if (folder / "pids.max").exists():
        return True
    folder.rmdir()
    return False


def _limit_user(pids: tuple[int, ...], most: int) -> None:
    """Bound the processes of this user instead; root is bound by no such limit."""
    if os.geteuid() == 0:
        pytest.skip("no control group for processes can be made, and nothing else bounds root")
    own = sum(1 for one in pathlib.Path("/proc").glob("[0-9]*") if _is_own(one))
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_NPROC, (own + most, own + most))


def _is_own(path: pathlib.Path) -> bool:
    with contextlib.suppress(OSError):
        return path.stat().st_uid == os.getuid()
    return False


@contextlib.contextmanager
def small_disk(folder: pathlib.Path, size: int) -> Iterator[None]:
    """Put a small file system in memory there."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        folder.rmdir()
        pytest.skip("this machine does not let root mount a file system")
    try:
        yield
    finally:
        unmount = ["umount", str(folder)]
        subprocess.run(unmount, check=True)


def free_bytes(folder: pathlib.Path) -> int:
    """Tell how much still fits on the disk of a folder."""
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize
