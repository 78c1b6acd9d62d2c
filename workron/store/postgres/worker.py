"""The worker's door. Every verb is one call of one function; nothing else can be asked here."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, jobspec, payloads
from workron.core.ids import ClaimId, Fence, JobId, SessionKey, WorkerId
from workron.core.states import Reason
from workron.store import types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from asyncpg import Record

    from workron.store.postgres.notify import Ring
    from workron.store.postgres.pool import ConnectionPool


_CLAIM_COLUMNS: Final = 13
"""What a row says of a claim stands at its end, in this order."""
_SPECS_AT_HAND: Final = 16
_ALL_WELL: Final = [types.ReportResult.ACCEPTED]


class PostgresWorkerVerbs:
    """What a worker can do, with a role that can execute these functions and nothing else."""

    def __init__(self, database: ConnectionPool, beats: ConnectionPool, ring: Ring) -> None:
        self._database = database
        # Beats have a connection of their own: a pool that is all in use must not cost a lease.
        self._beats = beats
        self._ring = ring

    async def register(self, registration: types.Registration) -> types.Session:
        """Enter a worker under its pool's token."""
        who = registration
        [row] = await self._database.fetch(
            "SELECT * FROM workron.register($1, $2, $3, $4)",
            who.token,
            who.name,
            who.boot,
            who.slots,
        )
        self._ring()
        return types.Session(
            WorkerId(row["worker"]),
            SessionKey(row["session"]),
            row["lease_seconds"],
            row["namespace"],
            row["pool"],
        )

    async def heartbeat(self, key: SessionKey) -> types.HeartbeatReply:
        """Prove life, and learn what is still held."""
        rows = await self._beats.fetch("SELECT * FROM workron.heartbeat($1)", key)
        held = [_held(row) for row in rows if row["job"] is not None]
        return types.HeartbeatReply(held, rows[0]["draining"], rows[0]["database"])

    async def claim(self, key: SessionKey, claims: Sequence[ClaimId]) -> Sequence[types.ClaimedJob]:
        """Take at most one ready job for each claim id."""
        rows = await self._database.fetch("SELECT * FROM workron.claim($1, $2)", key, claims)
        return _claims(rows)

    async def complete(
        self, key: SessionKey, ends: Sequence[types.AttemptReport], claims: Sequence[ClaimId] = ()
    ) -> types.CompleteReply:
        """Report ends and claim anew; one that the database refuses is found by halving."""
        try:
            return await self._complete(key, ends, claims)
        except errors.StoreDataError as refusal:
            if claims:
                # No end may be blamed for what is refused of a claim.
                accepted = await self.complete(key, ends)
                return types.CompleteReply(accepted.answers, await self.claim(key, claims))
            if len(ends) > 1:
                middle = len(ends) // 2
                first = await self.complete(key, ends[:middle])
                rest = await self.complete(key, ends[middle:])
                return types.CompleteReply([*first.answers, *rest.answers])
            return await self._complete(key, [_refused(ends[0], refusal)], claims)

    async def _complete(
        self, key: SessionKey, ends: Sequence[types.AttemptReport], claims: Sequence[ClaimId]
    ) -> types.CompleteReply:
        rows = await self._database.fetch(
            "SELECT * FROM workron.complete($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            key,
            *_report(ends),
            claims,
        )
        if ends:
            self._ring(key)
        is_all_accepted = not rows or rows[0]["answer"] is None
        count = 0 if is_all_accepted else len(ends)
        answers = [types.ReportResult(row["answer"]) for row in rows[:count]]
        return types.CompleteReply(answers or _ALL_WELL * len(ends), _claims(rows[count:]))

    async def release(
        self,
        key: SessionKey,
        rights: Sequence[types.ClaimRef],
        lost: types.LossKind | None = None,
    ) -> Sequence[types.ReportResult]:
        """Hand claims back."""
        rows = await self._database.fetch(
            "SELECT * FROM workron.release($1, $2, $3, $4)",
            key,
            [right.claim for right in rights],
            [right.fence for right in rights],
            lost,
        )
        self._ring()
        return [types.ReportResult(row["answer"]) for row in rows]

    async def append_output(
        self, key: SessionKey, right: types.ClaimRef, chunk: int, data: bytes
    ) -> types.ReportResult:
        """Store a piece of a running job's output."""
        answer = await self._database.fetch_value(
            "SELECT workron.append_output($1, $2, $3, $4, $5)", key, *right, chunk, data
        )
        return types.ReportResult(answer)

    async def deregister(self, key: SessionKey) -> None:
        """Forget a worker; what it still holds is released."""
        await self._database.fetch("SELECT workron.deregister($1)", key)
        self._ring()


def _held(row: Record) -> types.HeldClaim:
    mark = types.Signal(row["mark"]) if row["mark"] else None
    return types.HeldClaim(JobId(row["job"]), ClaimId(row["claim"]), Fence(row["fence"]), mark)


def _claims(rows: Sequence[Record]) -> list[types.ClaimedJob]:
    # Elements of one array share their inputs: they are read once.
    fit = functools.cache(_fit)
    return [_claimed(fit, *row[-_CLAIM_COLUMNS:]) for row in rows]


def _claimed(  # noqa: PLR0913, PLR0917 - one for each column of `claimed`
    fit: Callable[[str], tuple[Any, bool]],
    job: JobId,
    claim: ClaimId,
    attempt: int,
    failures: int,
    losses: int,
    fence: Fence,
    namespace: str,
    run: str,
    name: str,
    index: int | None,
    item: str | None,
    body: str,
    given: str | None,
) -> types.ClaimedJob:
    inputs, is_too_large = (None, False) if given is None else fit(given)
    return types.ClaimedJob(
        job,
        claim,
        attempt,
        failures,
        losses,
        fence,
        namespace,
        run,
        name,
        index,
        _spec(body),
        None if item is None else json.loads(json.loads(item)),
        inputs,
        is_too_large,
    )


@functools.lru_cache(_SPECS_AT_HAND)
def _spec(sent: str) -> jobspec.Spec:
    """Read a spec, which comes as JSON inside a JSON string, as items and inputs do."""
    return jobspec.of_text(json.loads(sent))


def _fit(sent: str) -> tuple[Any, bool]:
    """Read inputs; the database sends a JSON null for those that are too large."""
    text = json.loads(sent)
    return (None, True) if text is None else payloads.inputs_fit(text)


def _report(ends: Sequence[types.AttemptReport]) -> Iterator[list[Any] | None]:
    """Give what is told of ends as one list for each thing; None for what none of them has."""
    yield [end.job for end in ends]
    yield [end.claim for end in ends]
    yield [end.fence for end in ends]
    yield [end.outcome for end in ends]
    yield _unless_empty([end.reason for end in ends])
    yield _unless_empty([end.message for end in ends])
    yield [end.exit_code for end in ends]
    is_retried = any(end.outcome is types.Outcome.RETRY for end in ends)
    yield [end.delay_seconds for end in ends] if is_retried else None
    has_result = any(end.result is not None for end in ends)
    yield [_worded(end.result) for end in ends] if has_result else None
    yield _unless_empty([end.output for end in ends])


def _unless_empty(values: list[Any]) -> list[Any] | None:
    # Each value has its price here and there, and most ends are of commands that say nothing.
    return values if any(values) else None


def _worded(result: Any) -> str | None:
    return None if result is None else payloads.to_json(result)


def _refused(end: types.AttemptReport, refusal: errors.StoreDataError) -> types.AttemptReport:
    # Any of the values may be the bad one: none is sent again.
    return types.AttemptReport(
        end.job,
        end.claim,
        end.fence,
        types.Outcome.FAILED,
        Reason.RESULT_REFUSED,
        message=f"the store refused what this job reported: {refusal}",
    )
