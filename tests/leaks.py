"""Finds child processes, open sockets and threads that a test leaves behind.

Otherwise a leak makes another test fail later, when garbage is collected. `checked()` compares the
state before and after a test; a fixture with `autouse` in the conftest of a folder calls it.
"""

import contextlib
import os
import pathlib
import threading
from collections.abc import Iterator
from typing import NamedTuple

_SELF = pathlib.Path("/proc/self")
_SESSION_THREADS = frozenset({"execnet", "pytest_timeout"})
"""First words of the names of threads that live as long as the test session."""


class Resources(NamedTuple):
    """The resources of this process at one moment."""

    sockets: frozenset[str]
    children: frozenset[str]
    threads: frozenset[threading.Thread]


def resources() -> Resources:
    """Return the resources of this process."""
    return Resources(frozenset(_sockets()), frozenset(_children()), frozenset(_threads()))


@contextlib.contextmanager
def checked() -> Iterator[None]:
    """Raise AssertionError if the block leaves new resources behind."""
    before = resources()
    yield
    after = resources()
    left = [
        *(f"socket {one}" for one in after.sockets - before.sockets),
        *(f"child process {pid} ({_command(pid)})" for pid in after.children - before.children),
        *(f"thread {one.name}" for one in after.threads - before.threads),
    ]
    assert not left, f"the test leaves {', '.join(sorted(left))}"


def _sockets() -> Iterator[str]:
    with os.scandir(_SELF / "fd") as descriptors:
        for one in descriptors:
            with contextlib.suppress(OSError):
                if (target := os.readlink(one.path)).startswith("socket:"):  # noqa: PTH115 - fast
                    yield target


def _children() -> Iterator[str]:
    for task in (_SELF / "task").iterdir():
        with contextlib.suppress(OSError):
            yield from (task / "children").read_text().split()


def _threads() -> Iterator[threading.Thread]:
    for one in threading.enumerate():
        if not one.name.startswith(tuple(_SESSION_THREADS)):
            yield one


def _command(pid: str) -> str:
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return "?"
