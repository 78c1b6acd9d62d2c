"""A worker whose calls the test makes one by one; `Harness.worker` registers it."""

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
    """Create new claim ids."""
    return ids.mint_claims(datetime.now(UTC), _chance, count)


def mint_refs(count: int = 1) -> list[ClaimRef]:
    """Create references to claims that were never made."""
    return [ClaimRef(claim, ids.Fence(1)) for claim in mint(count)]


def mint_boot() -> UUID:
    return ids.mint_uuid(_chance)


def report_on(
    claimed: ClaimedJob, outcome: Outcome = Outcome.SUCCEEDED, **about: Any
) -> AttemptReport:
    """Make the report on a claim; `about` has fields of AttemptReport."""
    reason = None if outcome is Outcome.SUCCEEDED else Reason.EXIT_CODE
    return AttemptReport(claimed.job, *claimed.ref, outcome, **{"reason": reason} | about)


@dataclasses.dataclass
class Worker:
    """A session, and the methods that need it."""

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
        return await self.report(report_on(claimed, outcome, **about))

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

    async def heartbeat(self) -> types.HeartbeatReply:
        return await self.store.heartbeat(self.session.key)

    async def run_all(self, outcomes: Mapping[str, Outcome] | None = None) -> None:
        """Claim and complete, with the outcomes by name, until nothing is ready or unpropagated."""
        outcomes = outcomes or {}
        while True:
            claimed = await self.claim(MANY)
            ends = [report_on(one, outcomes.get(one.name, Outcome.SUCCEEDED)) for one in claimed]
            await self.store.complete(self.session.key, ends)
            if not await self.store.propagate(MANY) and not claimed:
                return
