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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from workron_runner import event_loop, process_reaper, spawn
from workron_runner.attempt import AttemptProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from workron_runner.protocol import Credit, Kill, Start
    from workron_runner.spawn import Launch
    from workron_runner.workspace import Workspace


class LaunchRequest(NamedTuple):
    """A command to start, and the descriptor that it writes to."""

    claim: str
    launch: Launch
    output: int


class LaunchResult(NamedTuple):
    """The outcome of a request; `error` is None if the command was started."""

    claim: str
    pid: int
    tag: int
    thread: LauncherThread
    error: Exception | None


class LauncherThread:
    """A thread that starts commands one after the other."""

    def __init__(self, pool: LauncherPool) -> None:
        self._pool = pool
        self._requests: queue.SimpleQueue[LaunchRequest | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="launcher", daemon=True)
        self._thread.start()

    def submit(self, request: LaunchRequest) -> None:
        """Start a command soon."""
        self._requests.put(request)

    def close(self) -> None:
        """End the thread, once its commands have ended."""
        self._requests.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (request := self._requests.get()) is not None:
            self._pool.report(self._start(request))

    def _start(self, request: LaunchRequest) -> LaunchResult:
        try:
            pid, tag = self._pool.start(request)
        except Exception as error:  # noqa: BLE001 - classified on the runner's thread
            return LaunchResult(request.claim, 0, 0, self, error)
        finally:
            os.close(request.output)
        return LaunchResult(request.claim, pid, tag, self, None)


class LauncherPool:
    """One shared launcher thread, or, with `prepare`, one for each command."""

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        self._prepare = prepare
        self._tags = process_reaper.AttemptTags()
        self._tag_lock = threading.Lock()
        self._results: queue.SimpleQueue[LaunchResult] = queue.SimpleQueue()
        self._results_ready: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._shared = LauncherThread(self) if prepare is None else None
        self._by_tag: dict[int, LauncherThread] = {}
        self.starting_tags: set[int] = set()
        """Tags of commands that may run already and whose result has not been read."""

    def fileno(self) -> int:
        """Return the descriptor that is readable when there are results."""
        return self._results_ready

    def submit(self, request: LaunchRequest) -> None:
        """Start a command soon and close its descriptor; OSError: there can be no thread for it."""
        if self._shared is not None:
            self._shared.submit(request)
            return
        try:
            thread = LauncherThread(self)
        except RuntimeError as error:
            os.close(request.output)
            raise OSError(errno.EAGAIN, str(error)) from None
        thread.submit(request)

    def results(self) -> Iterator[LaunchResult]:
        """Yield the results that have come since the last call."""
        os.eventfd_read(self._results_ready)
        while not self._results.empty():
            result = self._results.get()
            if self._shared is None and result.error is None:
                self._by_tag[result.tag] = result.thread
            elif self._shared is None:
                result.thread.close()
            yield result
            self.starting_tags.discard(result.tag)

    def release(self, tag: int) -> None:
        """End the thread of a command that has ended, if it had one of its own."""
        if thread := self._by_tag.pop(tag, None):
            thread.close()

    def close(self) -> None:
        """End all threads."""
        for thread in [*self._by_tag.values(), *([self._shared] if self._shared else [])]:
            thread.close()
        os.close(self._results_ready)

    def start(self, request: LaunchRequest) -> tuple[int, int]:
        """Start a command with a tag of its own; called on a launcher thread."""
        if self._prepare:
            self._prepare()
        # The tag is set on the whole process for the one command that inherits it.
        with self._tag_lock:
            tag = self._tags.set_next()
            # Before it runs: it may leave a process behind before its result is read.
            self.starting_tags.add(tag)
            try:
                return _start(request), tag
            except BaseException:
                self.starting_tags.discard(tag)
                raise

    def report(self, result: LaunchResult) -> None:
        """Queue a result; called on a launcher thread."""
        self._results.put(result)
        os.eventfd_write(self._results_ready, 1)


def _start(request: LaunchRequest) -> int:
    uid = request.launch.uid
    if uid is None:
        return spawn.spawn(request.launch, request.output)
    return spawn.fork(request.launch, uid, request.output)


@dataclass(slots=True)
class PendingStart:
    """A command that was requested and has not been started yet."""

    request: Start
    workspace: Workspace
    pipe: int
    received_at: float
    later: list[Kill | Credit] = field(default_factory=list)
    """Messages about it that have come meanwhile."""


class PendingStarts:
    """All starts that are under way."""

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        self._pool = LauncherPool(prepare)
        self._by_claim: dict[str, PendingStart] = {}

    def __len__(self) -> int:
        return len(self._by_claim)

    def get(self, claim: str) -> PendingStart | None:
        """Return the start of a claim, if it is under way."""
        return self._by_claim.get(claim)

    @property
    def starting_tags(self) -> Container[int]:
        """Tags of commands that may run already and have not been returned by `finished`."""
        return self._pool.starting_tags

    def fileno(self) -> int:
        """Return the descriptor that is readable when starts have finished."""
        return self._pool.fileno()

    def begin(self, request: Start, workspace: Workspace, launch: Launch) -> None:
        """Begin a start; OSError: this machine lacks a descriptor or a thread for it."""
        reader, writer = os.pipe()
        try:
            os.set_blocking(reader, False)
            self._pool.submit(LaunchRequest(request.claim, launch, writer))
        except OSError:
            os.close(reader)
            raise
        self._by_claim[request.claim] = PendingStart(
            request, workspace, reader, event_loop.boottime()
        )

    def finished(self) -> Iterator[tuple[PendingStart, AttemptProcess | Exception]]:
        """Yield the starts that have finished, with the process or the error."""
        for result in self._pool.results():
            start = self._by_claim.pop(result.claim)
            outcome = result.error or self._process(start, result)
            if isinstance(outcome, Exception):
                os.close(start.pipe)
            yield start, outcome

    def _process(self, start: PendingStart, result: LaunchResult) -> AttemptProcess | OSError:
        try:
            process = AttemptProcess(
                start.request, start.workspace, result.pid, result.tag, start.pipe
            )
        except OSError as error:
            # No descriptor is left for its pidfd.
            os.kill(result.pid, signal.SIGKILL)
            os.waitpid(result.pid, 0)
            self.release(result.tag)
            return error
        process.start_seconds = process.started_at - start.received_at
        return process

    def release(self, tag: int) -> None:
        """Release what a command needed while it ran."""
        self._pool.release(tag)

    def close(self) -> None:
        """End all launcher threads."""
        self._pool.close()
