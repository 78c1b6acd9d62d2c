"""Orders on their way: from the agent's word to a command that runs, or does not.

Called by `runner`. Meanwhile the agent may already have said more about an order; that waits here.
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
from workron_runner.attempt import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from workron_runner.protocol import Credit, Kill, Run
    from workron_runner.spawn import Launch
    from workron_runner.workspace import Workspace


class LaunchOrder(NamedTuple):
    """A command to be started, and the descriptor that it writes to."""

    claim: str
    launch: Launch
    output: int


class LaunchResult(NamedTuple):
    """What came of an order."""

    claim: str
    pid: int
    mark: int
    hand: LauncherThread
    error: Exception | None


class LauncherThread:
    """One such thread.

    It may prepare itself first, in a way that its commands inherit; if that fails, the start does.
    """

    def __init__(self, hands: LauncherThreads) -> None:
        self._hands = hands
        self._orders: queue.SimpleQueue[LaunchOrder | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="hand", daemon=True)
        self._thread.start()

    def take(self, order: LaunchOrder) -> None:
        """Start a command soon."""
        self._orders.put(order)

    def close(self) -> None:
        """End the thread; its commands would become children of the first one."""
        self._orders.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            self._hands.answer(self._start(order))

    def _start(self, order: LaunchOrder) -> LaunchResult:
        try:
            pid, mark = self._hands.start(order)
        except Exception as error:  # noqa: BLE001 - whoever asked for it gets it, and judges it
            return LaunchResult(order.claim, 0, 0, self, error)
        finally:
            os.close(order.output)
        return LaunchResult(order.claim, pid, mark, self, None)


class LauncherThreads:
    """Gives each command its hand: all the same one, or each its own, where it has to prepare."""

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        self._prepare = prepare
        self._marks = process_reaper.AttemptMarks()
        self._marking = threading.Lock()
        self._answers: queue.SimpleQueue[LaunchResult] = queue.SimpleQueue()
        self._bell: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._shared = LauncherThread(self) if prepare is None else None
        self._own: dict[int, LauncherThread] = {}
        self.coming: set[int] = set()
        """Marks of commands that run already, but of which nobody has been told."""

    def fileno(self) -> int:
        """Give the descriptor that can be read when there are answers."""
        return self._bell

    def take(self, order: LaunchOrder) -> None:
        """Have a command started, and its descriptor closed; `started` answers later."""
        if self._shared is not None:
            self._shared.take(order)
            return
        try:
            hand = LauncherThread(self)
        except RuntimeError as error:
            os.close(order.output)
            raise OSError(errno.EAGAIN, str(error)) from None
        hand.take(order)

    def started(self) -> Iterator[LaunchResult]:
        """Give the answers that have come."""
        os.eventfd_read(self._bell)
        while not self._answers.empty():
            answer = self._answers.get()
            if self._shared is None and answer.error is None:
                self._own[answer.mark] = answer.hand
            elif self._shared is None:
                answer.hand.close()
            yield answer
            self.coming.discard(answer.mark)

    def done(self, mark: int) -> None:
        """Let the hand of a command go, if it had one of its own; it has ended."""
        if hand := self._own.pop(mark, None):
            hand.close()

    def close(self) -> None:
        """Let all go."""
        for hand in [*self._own.values(), *([self._shared] if self._shared else [])]:
            hand.close()
        os.close(self._bell)

    def start(self, order: LaunchOrder) -> tuple[int, int]:
        """Start a command under a mark of its own; on the thread of a hand."""
        if self._prepare:
            self._prepare()
        # The mark is put on the whole process, for the one command that inherits it.
        with self._marking:
            mark = self._marks.put_on()
            # What it leaves at once may be an orphan before its start has been told of.
            self.coming.add(mark)
            try:
                return _start(order), mark
            except BaseException:
                self.coming.discard(mark)
                raise

    def answer(self, started: LaunchResult) -> None:
        """Hand an answer over; on the thread of a hand."""
        self._answers.put(started)
        os.eventfd_write(self._bell, 1)


def _start(order: LaunchOrder) -> int:
    uid = order.launch.uid
    if uid is None:
        return spawn.start(order.launch, order.output)
    return spawn.start_by_fork(order.launch, uid, order.output)


@dataclass(slots=True)
class PendingStart:
    """An order on its way."""

    order: Run
    place: Workspace
    pipe: int
    heard_at: float
    later: list[Kill | Credit] = field(default_factory=list)
    """What the agent has said about it since."""


class PendingStarts:
    """All orders on their way."""

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        self._hands = LauncherThreads(prepare)
        self._by_claim: dict[str, PendingStart] = {}

    def __len__(self) -> int:
        return len(self._by_claim)

    def get(self, claim: str) -> PendingStart | None:
        """Give the start of a claim, if it is on its way."""
        return self._by_claim.get(claim)

    @property
    def coming(self) -> Container[int]:
        """Give the marks of commands that run already, but have not arrived."""
        return self._hands.coming

    def fileno(self) -> int:
        """Give the descriptor that can be read when some have arrived."""
        return self._hands.fileno()

    def begin(self, order: Run, place: Workspace, launch: Launch) -> None:
        """Send an order on its way; OSError: it cannot even begin."""
        reader, writer = os.pipe()
        try:
            os.set_blocking(reader, False)
            self._hands.take(LaunchOrder(order.claim, launch, writer))
        except OSError:
            os.close(reader)
            raise
        self._by_claim[order.claim] = PendingStart(order, place, reader, event_loop.clock_now())

    def arrived(self) -> Iterator[tuple[PendingStart, Attempt | Exception]]:
        """Give the commands that run since the last call, and why others do not."""
        for answer in self._hands.started():
            start = self._by_claim.pop(answer.claim)
            outcome = answer.error or self._attempt(start, answer)
            if isinstance(outcome, Exception):
                os.close(start.pipe)
            yield start, outcome

    def _attempt(self, start: PendingStart, answer: LaunchResult) -> Attempt | OSError:
        try:
            attempt = Attempt(start.order, start.place, answer.pid, answer.mark, start.pipe)
        except OSError as error:
            # There is no descriptor left that would tell of its end.
            os.kill(answer.pid, signal.SIGKILL)
            os.waitpid(answer.pid, 0)
            self.ended(answer.mark)
            return error
        attempt.start_seconds = attempt.begun - start.heard_at
        return attempt

    def ended(self, mark: int) -> None:
        """Let go what a command needed for as long as it ran."""
        self._hands.done(mark)

    def close(self) -> None:
        """Start nothing any more."""
        self._hands.close()
