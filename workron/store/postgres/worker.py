"""The worker's interface. Each method calls one function of the database."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, jobspec, payloads
from workron.core.ids import ClaimId, SessionKey
from workron.core.states import Reason, State
from workron.store import api, types
from workron.store.postgres.database import PostgresDatabase

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncpg import Record


_CLAIM_COLUMNS: Final = 14
"""The columns of a claim are the last of a row, in this order."""
_ALL_ACCEPTED: Final = [types.ReportResult.ACCEPTED]


class PostgresWorkerStore(PostgresDatabase, api.WorkerStore):
    """`api.WorkerStore`, for a role that may execute these functions and nothing else."""

    async def register(self, registration: types.Registration) -> types.Session:
        who = registration
        [row] = await self._call("register", who.token, who.name, who.boot, who.slots)
        self._notifier.notify()
        return types.Session(
            row["worker"], row["session"], row["lease_seconds"], row["namespace"], row["pool"]
        )

    async def heartbeat(self, key: SessionKey) -> types.HeartbeatReply:
        rows = await self._heartbeats.fetch("SELECT * FROM workron.heartbeat($1)", key)
        held = [
            types.HeldClaim(
                row["job"],
                row["claim"],
                row["fence"],
                None if row["signal"] is None else types.Signal(row["signal"]),
            )
            for row in rows
            if row["job"] is not None
        ]
        return types.HeartbeatReply(held, rows[0]["draining"], rows[0]["database"])

    async def claim(self, key: SessionKey, claims: Sequence[ClaimId]) -> Sequence[types.ClaimedJob]:
        return _claimed_jobs(await self._call("claim", key, claims))

    async def complete(
        self,
        key: SessionKey,
        reports: Sequence[types.AttemptReport],
        claims: Sequence[ClaimId] = (),
    ) -> types.CompleteReply:
        """Implement `api.WorkerStore`; a report that is refused is found by halving."""
        try:
            return await self._complete(key, reports, claims)
        except errors.StoreDataError as refusal:
            if claims:
                # An error while claiming must not be blamed on a report.
                accepted = await self.complete(key, reports)
                return types.CompleteReply(accepted.answers, await self.claim(key, claims))
            if len(reports) > 1:
                middle = len(reports) // 2
                first = await self.complete(key, reports[:middle])
                rest = await self.complete(key, reports[middle:])
                return types.CompleteReply([*first.answers, *rest.answers])
            return await self._complete(key, [_as_refused(reports[0], refusal)], claims)

    async def _complete(
        self, key: SessionKey, reports: Sequence[types.AttemptReport], claims: Sequence[ClaimId]
    ) -> types.CompleteReply:
        rows = await self._call("complete", key, *_report_columns(reports), claims)
        if reports:
            self._notifier.notify(key)
        is_all_accepted = not rows or rows[0]["answer"] is None
        count = 0 if is_all_accepted else len(reports)
        answers = [types.ReportResult(row["answer"]) for row in rows[:count]]
        return types.CompleteReply(
            answers or _ALL_ACCEPTED * len(reports), _claimed_jobs(rows[count:])
        )

    async def release(
        self, key: SessionKey, claims: Sequence[types.ClaimRef], lost: types.LossKind | None = None
    ) -> Sequence[types.ReportResult]:
        ids, fences = [ref.claim for ref in claims], [ref.fence for ref in claims]
        rows = await self._call("release", key, ids, fences, lost)
        self._notifier.notify()
        return [types.ReportResult(row["answer"]) for row in rows]

    async def append_output(
        self, key: SessionKey, claim: types.ClaimRef, chunk: int, data: bytes
    ) -> types.ReportResult:
        return types.ReportResult(await self._call_value("append_output", key, *claim, chunk, data))

    async def deregister(self, key: SessionKey) -> None:
        await self._call("deregister", key)
        self._notifier.notify()


def _claimed_jobs(rows: Sequence[Record]) -> list[types.ClaimedJob]:
    # Elements of one array share their inputs: each text is parsed once.
    read_inputs = functools.cache(_read_inputs)
    jobs = []
    for row in rows:
        *values, item, spec, inputs, run_state = row[-_CLAIM_COLUMNS:]
        values += [
            jobspec.of_text(spec),
            None if item is None else json.loads(json.loads(item)),
            *((None, False) if inputs is None else read_inputs(inputs)),
            None if run_state is None else State(run_state),
        ]
        jobs.append(types.ClaimedJob(*values))
    return jobs


def _read_inputs(text: str) -> tuple[Any, bool]:
    """Decode inputs. The database sends a JSON null for inputs that are too large."""
    inputs = json.loads(text)
    return (None, True) if inputs is None else payloads.inputs_fit(inputs)


def _report_columns(reports: Sequence[types.AttemptReport]) -> Iterator[list[Any] | None]:
    """Return one list per field. None replaces a list without values, which saves time twice."""
    yield [report.job for report in reports]
    yield [report.claim for report in reports]
    yield [report.fence for report in reports]
    yield [report.outcome for report in reports]
    yield _unless_empty([report.reason for report in reports])
    yield _unless_empty([report.message for report in reports])
    yield [report.exit_code for report in reports]
    is_retried = any(report.outcome is types.Outcome.RETRY for report in reports)
    yield [report.delay_seconds for report in reports] if is_retried else None
    yield _unless_empty(
        [None if report.result is None else payloads.to_json(report.result) for report in reports]
    )
    yield _unless_empty([report.output for report in reports])


def _unless_empty(values: list[Any]) -> list[Any] | None:
    return values if any(values) else None


def _as_refused(report: types.AttemptReport, refusal: errors.StoreDataError) -> types.AttemptReport:
    # Any of the values may have caused the refusal, so none of them is sent again.
    return types.AttemptReport(
        report.job,
        report.claim,
        report.fence,
        types.Outcome.FAILED,
        Reason.RESULT_REFUSED,
        message=f"the store refused the report of this attempt: {refusal}",
    )
