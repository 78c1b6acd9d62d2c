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
from workron.store import api, types
from workron.store.types import AttemptReport, ClaimedJob, ClaimRef, Outcome, ReportResult

MANY: Final = 1000

_chance = random.Random()


def mint(count: int = 1) -> list[ClaimId]:
    """Draw claim ids that nobody has seen."""
    return ids.mint_claims(datetime.now(UTC), _chance, count)


def mint_rights(count: int = 1) -> list[ClaimRef]:
    """Name claims that nobody ever made."""
    return [ClaimRef(claim, ids.Fence(1)) for claim in mint(count)]


def mint_boot() -> UUID:
    return ids.mint_uuid(_chance)


def end_of(
    claimed: ClaimedJob, outcome: Outcome = Outcome.SUCCEEDED, **about: Any
) -> AttemptReport:
    """Word the report on a claim; `about` are fields of End."""
    reason = None if outcome is Outcome.SUCCEEDED else Reason.EXIT_CODE
    return AttemptReport(claimed.job, *claimed.ref, outcome, **{"reason": reason} | about)


@dataclasses.dataclass
class Worker:
    """A session, and the verbs that need it."""

    store: api.Store
    session: types.Session

    async def claim(self, count: int = 1) -> Sequence[ClaimedJob]:
        return await self.store.claim(self.session.key, mint(count))

    async def claim_one(self) -> ClaimedJob:
        (claimed,) = await self.claim()
        return claimed

    async def claim_by_name(self) -> dict[str, ClaimedJob]:
        return {claimed.name: claimed for claimed in await self.claim(MANY)}

    async def end(
        self, claimed: ClaimedJob, outcome: Outcome = Outcome.SUCCEEDED, **about: Any
    ) -> ReportResult:
        return await self.report(end_of(claimed, outcome, **about))

    async def fail(self, claimed: ClaimedJob) -> ReportResult:
        return await self.end(claimed, Outcome.FAILED, exit_code=1)

    async def retry(self, claimed: ClaimedJob, delay_seconds: float = 10.0) -> ReportResult:
        return await self.end(claimed, Outcome.RETRY, delay_seconds=delay_seconds)

    async def report(self, end: AttemptReport) -> ReportResult:
        completed = await self.store.complete(self.session.key, [end])
        (answer,) = completed.answers
        return answer

    async def release(self, *claimed: ClaimedJob) -> Sequence[ReportResult]:
        return await self.store.release(self.session.key, [one.ref for one in claimed])

    async def beat(self) -> types.HeartbeatReply:
        return await self.store.heartbeat(self.session.key)

    async def run_all(self, fates: Mapping[str, Outcome] | None = None) -> None:
        """Claim and end, as `fates` says by name, until nothing is ready or unsettled."""
        fates = fates or {}
        while True:
            claimed = await self.claim(MANY)
            ends = [end_of(one, fates.get(one.name, Outcome.SUCCEEDED)) for one in claimed]
            await self.store.complete(self.session.key, ends)
            if not await self.store.propagate(MANY) and not claimed:
                return
