"""Threads that start commands, so that these are their children and not the first thread's.

Called by `runner`, which goes on meanwhile and is told by a descriptor that there are answers.
"""

from __future__ import annotations

import errno
import os
import queue
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from workron_runner import fork, spawn, strays

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from workron_runner.spawn import Launch


class Order(NamedTuple):
    """A command to be started, and the descriptor that it writes to."""

    claim: str
    launch: Launch
    output: int


class Started(NamedTuple):
    """What came of an order."""

    claim: str
    pid: int
    mark: int
    hand: Hand
    error: Exception | None


class Hand:
    """One such thread.

    It may prepare itself first, in a way that its commands inherit; if that fails, the start does.
    """

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="hand", daemon=True)
        self._thread.start()

    def take(self, order: Order) -> None:
        """Start a command soon."""
        self._orders.put(order)

    def close(self) -> None:
        """End the thread; its commands would become children of the first one."""
        self._orders.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            self._hands.answer(self._start(order))

    def _start(self, order: Order) -> Started:
        try:
            pid, mark = self._hands.start(order)
        except Exception as error:  # noqa: BLE001 - whoever asked for it gets it, and judges it
            return Started(order.claim, 0, 0, self, error)
        finally:
            os.close(order.output)
        return Started(order.claim, pid, mark, self, None)


class Hands:
    """Gives each command its hand: all the same one, or each its own, where it has to prepare."""

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        self._prepare = prepare
        self._marks = strays.Marks()
        self._marking = threading.Lock()
        self._answers: queue.SimpleQueue[Started] = queue.SimpleQueue()
        self._bell: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._shared = Hand(self) if prepare is None else None
        self._own: dict[int, Hand] = {}
        self.coming: set[int] = set()
        """Marks of commands that run already, but of which nobody has been told."""

    def fileno(self) -> int:
        """Give the descriptor that can be read when there are answers."""
        return self._bell

    def take(self, order: Order) -> None:
        """Have a command started, and its descriptor closed; `started` answers later."""
        if self._shared is not None:
            self._shared.take(order)
            return
        try:
            hand = Hand(self)
        except RuntimeError as error:
            os.close(order.output)
            raise OSError(errno.EAGAIN, str(error)) from None
        hand.take(order)

    def started(self) -> Iterator[Started]:
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

    def start(self, order: Order) -> tuple[int, int]:
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

    def answer(self, started: Started) -> None:
        """Hand an answer over; on the thread of a hand."""
        self._answers.put(started)
        os.eventfd_write(self._bell, 1)


def _start(order: Order) -> int:
    uid = order.launch.uid
    if uid is None:
        return spawn.start(order.launch, order.output)
    return fork.start(order.launch, uid, order.output)
