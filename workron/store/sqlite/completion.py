"""Ending claims and jobs, and propagating ends.

Operations fill temporary tables (`sql/scratch.sql`), and the shared functions here process them:

1. `end_claims`: `ended_claim` becomes attempts, and jobs that end (`ended_job`) or go on
   (`unblocked_job`);
2. `record_ends`: `ended_job` becomes rows of `done`;
3. `propagate_to_downstreams`: `ended_job` becomes `downstream_update`;
4. `update_downstreams`: counts down `waiting`; jobs with nothing left to wait for go on or end;
5. `enqueue_jobs`: `unblocked_job` becomes rows of `ready`, `deferred` or `waiting`.

An operation propagates its ends one level. Ends that follow from them, of groups and skipped jobs,
are left in `unpropagated` for the maintainer.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, payloads
from workron.core.states import Reason
from workron.store.sqlite import driver_errors, engine
from workron.store.sqlite.claims import claim_ready, find_session
from workron.store.types import CompleteReply, Outcome, ReportResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.core.ids import ClaimId, SessionKey
    from workron.store.sqlite.engine import Transaction
    from workron.store.types import AttemptReport


def end_claims(tx: Transaction) -> None:
    """Process `ended_claim`: record the attempts, end the jobs or requeue them."""
    tx.run("end_claims.apply_signals")
    ended = tx.run("end_claims.insert_attempts")
    tx.run("end_claims.delete_running")
    if tx.run("end_claims.select_ended_jobs") < ended:
        tx.run("end_claims.select_unblocked_jobs")
        tx.run("end_claims.insert_awaiting_proof")
    finish_jobs(tx)


def finish_jobs(tx: Transaction) -> None:
    """Process `ended_job`, up to direct downstreams, and `unblocked_job`."""
    record_ends(tx)
    propagate_to_downstreams(tx)
    update_downstreams(tx)


def enqueue_jobs(tx: Transaction) -> None:
    """Process `unblocked_job`; jobs of a cancelled run go to `ended_job`."""
    if tx.run("enqueue.choose_destination"):
        for step in ("cancel", "insert_waiting", "insert_deferred", "insert_ready"):
            tx.run(f"enqueue.{step}")


def record_ends(tx: Transaction) -> None:
    """Insert the rows of `ended_job` into `done`, and keep them."""
    if tx.run("propagate_ends.insert_done"):
        tx.run("propagate_ends.delete_deadlines")
        tx.run("propagate_ends.delete_external_dependencies")
        tx.run("propagate_ends.delete_awaiting_proof")


def propagate_to_downstreams(tx: Transaction) -> None:
    """Process `ended_job` into `downstream_update`."""
    tx.run("propagate_ends.select_downstreams")
    if tx.run("propagate_ends.cancel_failed_runs"):
        tx.run("propagate_ends.request_cancellations")
    tx.run("clear_scratch.ended_job")


def update_downstreams(tx: Transaction) -> None:
    """Process `downstream_update` and `unblocked_job`; new ends are left to the maintainer."""
    if tx.run("propagate_ends.count_down"):
        tx.run("propagate_ends.select_unblocked_jobs")
        tx.run("propagate_ends.select_ended_jobs")
        tx.run("propagate_ends.delete_waiting")
    enqueue_jobs(tx)
    record_ends(tx)
    defer_propagation(tx)


def defer_propagation(tx: Transaction) -> None:
    """Leave the propagation of `ended_job` to the maintainer."""
    tx.run("propagate_ends.insert_unpropagated")


_REFUSED: Final = (*driver_errors.REFUSED, errors.StoreDataError)


def complete(
    tx: Transaction, key: SessionKey, reports: Sequence[AttemptReport], claims: Sequence[ClaimId]
) -> CompleteReply:
    """Accept reports on valid claims, propagate the ends, and claim new jobs."""
    tx.clear()
    worker = find_session(tx, key)
    answers = _accept(tx, worker, reports) if reports else []
    return CompleteReply(answers, claim_ready(tx, worker, claims) if claims else [])


def _accept(tx: Transaction, worker: Any, reports: Sequence[AttemptReport]) -> list[ReportResult]:
    _insert_reports(tx, reports)
    accepted = tx.run("complete.select_ended_claims", worker=worker["id"], name=worker["name"])
    answers = [ReportResult.ACCEPTED] * accepted
    if accepted != len(reports):
        answers = [ReportResult(row["answer"]) for row in tx.rows("complete.answers")]
    end_claims(tx)
    tx.run("complete.insert_results")
    tx.run("complete.insert_outputs")
    return answers


def _insert_reports(tx: Transaction, reports: Sequence[AttemptReport]) -> None:
    """Fill `attempt_report`; a report that SQLite refuses is replaced by a failure."""
    try:
        tx.fill("complete.insert_report", itertools.starmap(_report_row, enumerate(reports)))
    except _REFUSED:
        tx.run("clear_scratch.attempt_report")
        for number, report in enumerate(reports):
            _insert_report(tx, number, report)


def _insert_report(tx: Transaction, number: int, report: AttemptReport) -> None:
    try:
        tx.fill("complete.insert_report", [_report_row(number, report)])
    except _REFUSED as cause:
        refused = (
            Outcome.FAILED,
            Reason.RESULT_REFUSED,
            f"the store refused the report of this attempt: {cause}",
        )
        tx.fill(
            "complete.insert_report",
            [(number, report.job, str(report.claim), report.fence, *refused, None, 0, "", "")],
        )


def _report_row(number: int, report: AttemptReport) -> tuple[Any, ...]:
    # sqlite3 looks for an adapter for every value that is not a number or text, None and bytes
    # included. So values that most reports lack are sent as an empty text.
    return (
        number,
        report.job,
        str(report.claim),
        report.fence,
        str(report.outcome),
        str(report.reason or ""),
        report.message,
        report.exit_code,
        engine.seconds_to_micros(report.delay_seconds),
        "" if report.result is None else payloads.to_json(report.result),
        report.output or "",
    )
