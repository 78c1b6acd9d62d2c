"""What all verbs of the random walk share: the store, the oracle beside it, and who is there.

Ends are passed on by the maintainer in steps of its own. Until it has, the store may lag behind
the oracle, but only in what follows from other ends; the verbs whose effect depends on how far it
has come settle first.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.store.behaviour.grounds import Ground
from tests.store.behaviour.harness import Harness
from tests.store.machine.oracle import Crew, Oracle
from workron.core.ids import ClaimId
from workron.core.plan import Plan
from workron.store.protocol import Claimed, End, Registration, Session

T = TypeVar("T")
Draw = Callable[..., Any]

PICK = st.integers(0, 100)


@dataclass(eq=False)
class Hand(Crew):
    """A worker's process: its session, what it claimed, and its latest calls, to be repeated."""

    registration: Registration = field(kw_only=True)
    session: Session = field(kw_only=True)
    claimed: list[Claimed] = field(default_factory=list)
    last_claim: Sequence[ClaimId] = ()
    last_ends: Sequence[End] = ()


class Walk:
    """One walk, from an empty store on."""

    def __init__(self, make_ground: Callable[[], Ground]) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.oracle = Oracle()
        self.hands: list[Hand] = []
        self.gone: list[Hand] = []
        self.plans: list[Plan] = []
        self.is_settled = True
        self.harness = self.run(_open(make_ground()))
        self.store = self.harness.store
        self.advance(timedelta())

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(call)

    def close(self) -> None:
        self.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        try:
            await self.harness.check()
        finally:
            await self.harness.close()
            await self.harness.ground.close()

    def advance(self, by: timedelta) -> None:
        self.run(self.harness.advance(by))
        self.oracle.now = self.harness.ground.clock.now()

    def settle(self) -> None:
        self.run(self.harness.settle())
        self.is_settled = True

    def busy(self) -> list[Hand]:
        """Prefer those who hold something, then those who did."""
        busy = [hand for hand in self.hands if self.oracle.held(hand)]
        return busy or [hand for hand in self.hands if hand.claimed] or self.hands

    def bury(self, hand: Hand, *, is_proven: bool) -> set[int]:
        """Give the jobs that failed with it."""
        failed = self.oracle.reap(hand, is_proven=is_proven)
        self.forget(hand)
        if is_proven:
            self.oracle.prove(self.namesakes(self.gone, hand.pool, hand.name))
        return {job.id for job in failed}

    def forget(self, hand: Hand) -> None:
        self.hands.remove(hand)
        self.gone.append(hand)
        self.is_settled = False

    def namesakes(self, hands: Sequence[Hand], pool: str, name: str) -> list[Hand]:
        return [one for one in hands if (one.pool, one.name) == (pool, name)]


async def _open(ground: Ground) -> Harness:
    await ground.clear()
    return Harness(ground, await ground.open())


def at(things: Sequence[T], pick: int) -> T:
    """Pick one of however many there are."""
    return things[pick % len(things)]
