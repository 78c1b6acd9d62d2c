"""Orders on their way: from the agent's word to a command that runs, or does not.

Called by `runner`. Meanwhile the agent may already have said more about an order; that waits here.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workron_runner import hands, limits
from workron_runner.attempt import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from workron_runner.messages import Credit, Kill, Run
    from workron_runner.scratch import Place
    from workron_runner.spawn import Launch


@dataclass(slots=True)
class Start:
    """An order on its way."""

    order: Run
    place: Place
    pipe: int
    heard_at: float
    later: list[Kill | Credit] = field(default_factory=list)
    """What the agent has said about it since."""


class Starts:
    """All orders on their way."""

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        self._hands = hands.Hands(prepare)
        self._by_claim: dict[str, Start] = {}

    def __len__(self) -> int:
        return len(self._by_claim)

    def get(self, claim: str) -> Start | None:
        """Give the start of a claim, if it is on its way."""
        return self._by_claim.get(claim)

    @property
    def coming(self) -> Container[int]:
        """Give the marks of commands that run already, but have not arrived."""
        return self._hands.coming

    def fileno(self) -> int:
        """Give the descriptor that can be read when some have arrived."""
        return self._hands.fileno()

    def begin(self, order: Run, place: Place, launch: Launch) -> None:
        """Send an order on its way; OSError: it cannot even begin."""
        reader, writer = os.pipe()
        try:
            os.set_blocking(reader, False)
            self._hands.take(hands.Order(order.claim, launch, writer))
        except OSError:
            os.close(reader)
            raise
        self._by_claim[order.claim] = Start(order, place, reader, limits.now())

    def arrived(self) -> Iterator[tuple[Start, Attempt | Exception]]:
        """Give the commands that run since the last call, and why others do not."""
        for answer in self._hands.started():
            start = self._by_claim.pop(answer.claim)
            outcome = answer.error or self._attempt(start, answer)
            if isinstance(outcome, Exception):
                os.close(start.pipe)
            yield start, outcome

    def _attempt(self, start: Start, answer: hands.Started) -> Attempt | OSError:
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
