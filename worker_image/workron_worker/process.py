"""One command as processes: started in a session of its own, read to the end, then all killed.

Called by `local_executor`, `run` from a thread of its own and `signal` from any other. The end is
the end of the command that was started, not of its output: what it left behind in its process
group is killed, and what escaped the group and holds the pipe is read for a moment only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from workron_worker.window import Window

_CHUNK_BYTES: Final = 64 * 1024
_DRAIN_SECONDS: Final = 0.5
_REST_CHUNKS: Final = 16
"""A pipe of Linux holds at most 1 MiB, unless an administrator has raised that."""
_LOOK_MILLISECONDS: Final = 20
_DEATH_SECONDS: Final = 0.25
_DEATH_LOOK_SECONDS: Final = 0.001


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start, where, and what it sees."""

    argv: Sequence[str]
    directory: str
    environment: Mapping[str, str]


class Process:
    """A command and its process group."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def run(
        self, launch: Launch, on_output: Callable[[bytes], None], window: Window | None = None
    ) -> int:
        """Run to the end; the exit code, or less than 0: the signal. OSError: not started.

        While the window is shut the command waits in its pipe; its end is seen all the same, and
        what the pipe then holds is read.
        """
        child = self._start(launch)
        if child is None or child.stdout is None:
            return -signal.SIGTERM
        with child.stdout as pipe:
            try:
                _read_until_exit(child, pipe.fileno(), on_output, window)
                # What it left in its group would go on writing.
                self.signal(signal.SIGKILL)
                _read_rest(pipe.fileno(), on_output)
            finally:
                self.signal(signal.SIGKILL)
                self._reap(child)
                _await_death(child.pid)
        return child.returncode

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group; before the start, it forbids the start."""
        with self._lock:
            if self._is_over:
                return
            if self._child is None:
                self._is_over = True
                return
            # The leader is not reaped yet, so this number still means this group.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, number)

    def _start(self, launch: Launch) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._is_over:
                return None
            self._child = subprocess.Popen(  # noqa: S603 - running what the job says is the point
                launch.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                cwd=launch.directory,
                env=launch.environment,
                start_new_session=True,
            )
            return self._child

    def _reap(self, child: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._is_over = True
            child.wait()


def _await_death(group: int) -> None:
    """A killed process is not dead at once; what nobody collects is not waited for long."""
    until = time.monotonic() + _DEATH_SECONDS
    with contextlib.suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < until:
            os.killpg(group, 0)
            time.sleep(_DEATH_LOOK_SECONDS)


def _read_until_exit(
    child: subprocess.Popen[bytes],
    pipe: int,
    on_output: Callable[[bytes], None],
    window: Window | None,
) -> None:
    is_open = True
    with _exit_descriptor(child) as ended:
        while True:
            source = _source(pipe, window) if is_open else None
            ready = _wait(_patience(ended), source, ended)
            if ended in ready or (ended is None and child.poll() is not None):
                return
            if pipe in ready:
                is_open = _read_once(pipe, on_output)
            elif source in ready and window is not None:
                window.hush()


def _source(pipe: int, window: Window | None) -> int:
    return pipe if window is None or not window.is_shut else window.fileno()


def _wait(milliseconds: int | None, *descriptors: int | None) -> Sequence[int]:
    poller = select.poll()
    for descriptor in descriptors:
        if descriptor is not None:
            poller.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poller.poll(milliseconds)]


def _patience(ended: int | None) -> int | None:
    """Without a descriptor that tells of the exit, it has to be looked for now and then."""
    return _LOOK_MILLISECONDS if ended is None else None


@contextlib.contextmanager
def _exit_descriptor(child: subprocess.Popen[bytes]) -> Iterator[int | None]:
    try:
        descriptor = os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        # Only Linux has it; everywhere else, and where it is forbidden, the caller looks.
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_rest(pipe: int, on_output: Callable[[bytes], None]) -> None:
    poller = select.poll()
    poller.register(pipe, select.POLLIN)
    until = time.monotonic() + _DRAIN_SECONDS
    for _ in range(_REST_CHUNKS):
        left = until - time.monotonic()
        if left <= 0 or not poller.poll(left * 1000) or not _read_once(pipe, on_output):
            return


def _read_once(pipe: int, on_output: Callable[[bytes], None]) -> bool:
    chunk = os.read(pipe, _CHUNK_BYTES)
    if chunk:
        on_output(chunk)
    return bool(chunk)
