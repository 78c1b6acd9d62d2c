"""A worker that does only what a test tells it to; made by `Harness.worker`."""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from workron.core import ids
from workron.core.ids import ClaimId
from workron.core.states import Reason
from workron.store import protocol
from workron.store.protocol import Answer, Claimed, End, Outcome, Right

MANY: Final = 1000

_chance = random.Random()


def mint(count: int = 1) -> list[ClaimId]:
    """Draw claim ids that nobody has seen."""
    return ids.mint_claims(datetime.now(UTC), _chance, count)


def mint_rights(count: int = 1) -> list[Right]:
    """Name claims that nobody ever made."""
    return [Right(claim, ids.Fence(1)) for claim in mint(count)]


def mint_boot() -> UUID:
    return ids.mint_uuid(_chance)


def end_of(claimed: Claimed, outcome: Outcome = Outcome.SUCCEEDED, **about: Any) -> End:
    """Word the report on a claim; `about` are fields of End."""
    reason = None if outcome is Outcome.SUCCEEDED else Reason.EXIT_CODE
    return End(claimed.job, *claimed.right, outcome, **{"reason": reason} | about)


@dataclasses.dataclass
class Worker:
    """A session, and the verbs that need it."""

    store: protocol.Store
    session: protocol.Session

    async def claim(self, count: int = 1) -> Sequence[Claimed]:
        return await self.store.claim(self.session.key, mint(count))

    async def claim_one(self) -> Claimed:
        (claimed,) = await self.claim()
        return claimed

    async def claim_by_name(self) -> dict[str, Claimed]:
        return {claimed.name: claimed for claimed in await self.claim(MANY)}

    async def end(
        self, claimed: Claimed, outcome: Outcome = Outcome.SUCCEEDED, **about: Any
    ) -> Answer:
        return await self.report(end_of(claimed, outcome, **about))

    async def fail(self, claimed: Claimed) -> Answer:
        return await self.end(claimed, Outcome.FAILED, exit_code=1)

    async def retry(self, claimed: Claimed, delay_seconds: float = 10.0) -> Answer:
        return await self.end(claimed, Outcome.RETRY, delay_seconds=delay_seconds)

    async def report(self, end: End) -> Answer:
        completed = await self.store.complete(self.session.key, [end])
        (answer,) = completed.answers
        return answer

    async def release(self, *claimed: Claimed) -> Sequence[Answer]:
        return await self.store.release(self.session.key, [one.right for one in claimed])

    async def beat(self) -> protocol.Beat:
        return await self.store.beat(self.session.key)

    async def run_all(self, fates: Mapping[str, Outcome] | None = None) -> None:
        """Claim and end, as `fates` says by name, until nothing is ready or unsettled."""
        fates = fates or {}
        while True:
            claimed = await self.claim(MANY)
            ends = [end_of(one, fates.get(one.name, Outcome.SUCCEEDED)) for one in claimed]
            await self.store.complete(self.session.key, ends)
            if not await self.store.settle(MANY) and not claimed:
                return
