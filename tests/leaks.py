"""Finds child processes, open sockets, threads and asyncio tasks that a test leaves behind.

Otherwise a leak makes another test fail later, when garbage is collected. `checked()` compares the
state before and after a test. `checked_tasks()` belongs in an async fixture, because the end of an
event loop cancels its tasks.
"""

import asyncio
import contextlib
import os
import pathlib
import threading
from collections.abc import AsyncIterator, Iterator
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
def checked(end_seconds: float = 10.0) -> Iterator[None]:
    """Raise AssertionError if the block leaves new resources behind.

    A thread whose work is done may need a moment to end; it has `end_seconds` for it.
    """
    before = resources()
    yield
    for thread in resources().threads - before.threads:
        thread.join(end_seconds)
    after = resources()
    left = [
        *(f"socket {one}" for one in after.sockets - before.sockets),
        *(f"child process {pid} ({_command(pid)})" for pid in after.children - before.children),
        *(f"thread {one.name}" for one in after.threads - before.threads),
    ]
    assert not left, f"the test leaves {', '.join(sorted(left))}"


@contextlib.asynccontextmanager
async def checked_tasks(end_seconds: float = 10.0) -> AsyncIterator[None]:
    """Raise AssertionError if a task of the running event loop is pending at the end.

    A task whose work is done may need a moment to end; it has `end_seconds` for it. The threads of
    `asyncio.to_thread` belong to the loop, and end here.
    """
    before = asyncio.all_tasks()
    yield
    if left := asyncio.all_tasks() - before - {asyncio.current_task()}:
        _, left = await asyncio.wait(left, timeout=end_seconds)
    await asyncio.get_running_loop().shutdown_default_executor()
    assert not left, f"the test leaves {', '.join(sorted(map(repr, left)))}"


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
