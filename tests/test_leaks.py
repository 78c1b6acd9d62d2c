"""The check of leaks finds each kind of thing that a test may leave behind."""

import asyncio
import contextlib
import socket
import subprocess
import threading
from collections.abc import Callable

import pytest

from tests import leaks


def _message_of(leak: Callable[[], object]) -> str:
    with pytest.raises(AssertionError) as failed, leaks.checked(end_seconds=0):
        leak()
    return str(failed.value)


def test_open_socket_is_reported_when_a_test_leaves_it() -> None:
    with contextlib.ExitStack() as later:
        message = _message_of(lambda: later.enter_context(socket.socket()))
    assert message.startswith("the test leaves socket")


def test_child_process_is_reported_when_a_test_leaves_it() -> None:
    children: list[subprocess.Popen[bytes]] = []
    message = _message_of(lambda: children.append(subprocess.Popen(["/bin/sleep", "1000"])))
    for child in children:
        child.kill()
        child.wait()
    assert message.startswith(f"the test leaves child process {children[0].pid}")


def test_thread_is_reported_when_a_test_leaves_it() -> None:
    may_end = threading.Event()
    thread = threading.Thread(target=may_end.wait, name="left")
    message = _message_of(thread.start)
    may_end.set()
    thread.join()
    assert message == "the test leaves thread left"


async def test_task_is_reported_when_a_test_leaves_it() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(AssertionError) as failed:
        async with leaks.checked_tasks(end_seconds=0):
            task = asyncio.create_task(wait())
    task.cancel()
    assert str(failed.value).startswith("the test leaves <Task pending")


def test_nothing_is_reported_when_all_is_closed() -> None:
    with leaks.checked(), socket.socket():
        subprocess.run(["/bin/true"], check=True)
