"""From a Start message to a running command: starts that are under way, on launcher threads.

Starting takes milliseconds, so it happens on threads and the event loop goes on meanwhile. One
thread starts all commands, unless each command needs preparation that its thread cannot undo, such
as a Landlock domain; then each command has a thread of its own, which lives as long as the command
(the children of a thread that ends would move to the first thread; see `process_reaper`).
"""

from __future__ import annotations

import errno
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from workron_runner import event_loop, process_reaper, spawn
from workron_runner.attempt import AttemptProcess
from workron_runner.protocol import Credit, Kill, Start
from workron_runner.spawn import Launch
from workron_runner.workspace import Workspace


class LauncherThread:
    """A thread that starts commands one after the other."""

    def __init__(self, start: Callable[[PendingStart], None]) -> None:
        self.requests: queue.SimpleQueue[PendingStart | None] = queue.SimpleQueue()
        self._start = start
        self._thread = threading.Thread(target=self._run, name="launcher", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, once its commands have ended."""
        self.requests.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (request := self.requests.get()) is not None:
            self._start(request)


@dataclass(slots=True)
class PendingStart:
    """A command that was requested and has not been returned by `Launcher.finished` yet."""

    request: Start
    workspace: Workspace
    launch: Launch
    reader: int
    writer: int
    """The ends of the pipe for its output."""
    thread: LauncherThread
    received_at: float = field(default_factory=event_loop.boottime)
    later: list[Kill | Credit] = field(default_factory=list)
    """Messages about it that have come meanwhile."""
    pid: int = 0
    tag: int = 0
    error: Exception | None = None


class Launcher:
    """All starts that are under way, on one shared thread or, with `prepare`, on one for each."""

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        self._prepare = prepare
        self._tags = process_reaper.AttemptTags()
        self._tag_lock = threading.Lock()
        self._by_claim: dict[str, PendingStart] = {}
        self._finished: queue.SimpleQueue[PendingStart] = queue.SimpleQueue()
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._shared = LauncherThread(self._start) if prepare is None else None
        self._thread_by_tag: dict[int, LauncherThread] = {}
        self.starting_tags: set[int] = set()
        """Tags of commands that may run already and have not been returned by `finished`."""

    def __len__(self) -> int:
        return len(self._by_claim)

    def get(self, claim: str) -> PendingStart | None:
        """Return the start of a claim, if it is under way."""
        return self._by_claim.get(claim)

    def fileno(self) -> int:
        """Return the descriptor that is readable when starts have finished."""
        return self._wakeup

    def begin(self, request: Start, workspace: Workspace, launch: Launch) -> None:
        """Begin a start; OSError: this machine lacks a descriptor or a thread for it."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        try:
            thread = self._shared or LauncherThread(self._start)
        except RuntimeError as error:
            os.close(reader)
            os.close(writer)
            raise OSError(errno.EAGAIN, str(error)) from None
        start = PendingStart(request, workspace, launch, reader, writer, thread)
        self._by_claim[request.claim] = start
        thread.requests.put(start)

    def finished(self) -> Iterator[tuple[PendingStart, AttemptProcess | Exception]]:
        """Yield the starts that have finished, with the process or the error."""
        os.eventfd_read(self._wakeup)
        while not self._finished.empty():
            start = self._finished.get()
            del self._by_claim[start.request.claim]
            outcome = start.error or _process(start)
            if self._shared is None:
                self._thread_by_tag[start.tag] = start.thread
            if isinstance(outcome, Exception):
                os.close(start.reader)
                self.release(start.tag)
            yield start, outcome
            self.starting_tags.discard(start.tag)

    def release(self, tag: int) -> None:
        """End the thread of a command that has ended, if it had one of its own."""
        if thread := self._thread_by_tag.pop(tag, None):
            thread.close()

    def close(self) -> None:
        """End all threads."""
        for thread in filter(None, [*self._thread_by_tag.values(), self._shared]):
            thread.close()
        os.close(self._wakeup)

    def _start(self, start: PendingStart) -> None:
        """Start a command with a tag of its own; called on a launcher thread."""
        launch = start.launch
        try:
            if self._prepare:
                self._prepare()
            # The tag is set on the whole process for the one command that inherits it.
            with self._tag_lock:
                start.tag = self._tags.set_next()
                # Before it runs: it may leave a process behind before its result is read.
                self.starting_tags.add(start.tag)
                start.pid = (
                    spawn.spawn(launch, start.writer)
                    if launch.uid is None
                    else spawn.fork(launch, launch.uid, start.writer)
                )
        except Exception as error:  # noqa: BLE001 - classified on the runner's thread
            start.error = error
        finally:
            os.close(start.writer)
        self._finished.put(start)
        os.eventfd_write(self._wakeup, 1)


def _process(start: PendingStart) -> AttemptProcess | OSError:
    try:
        process = AttemptProcess(start.request, start.workspace, start.pid, start.tag, start.reader)
    except OSError as error:
        # No descriptor is left for its pidfd.
        os.kill(start.pid, signal.SIGKILL)
        os.waitpid(start.pid, 0)
        return error
    process.start_seconds = process.started_at - start.received_at
    return process
