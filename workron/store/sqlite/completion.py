"""complete: taking a worker's reports in, one bad one without harm to the others.

Called by `worker`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, payloads
from workron.core.states import Reason
from workron.store.sqlite import driver_errors, engine
from workron.store.sqlite.claims import take, worker_of
from workron.store.types import CompleteReply, Outcome, ReportResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workron.core.ids import ClaimId, SessionKey
    from workron.store.sqlite.engine import Transaction
    from workron.store.types import AttemptReport


def end_claims(tx: Transaction) -> None:
    """Work off `fallen`: record the attempts, end the jobs or let them go on."""
    tx.run("end_claims.obey")
    over = tx.run("end_claims.record")
    tx.run("end_claims.leave_running")
    if tx.run("end_claims.end") < over:
        tx.run("end_claims.go_on")
        tx.run("end_claims.miss")
    finish_jobs(tx)


def finish_jobs(tx: Transaction) -> None:
    """Work off `ended`, told to its direct downstreams, and `moving`."""
    record_ends(tx)
    notify_downstreams(tx)
    conclude_groups(tx)


def place_jobs(tx: Transaction) -> None:
    """Work off `moving`: each goes where it may be; who belongs to a cancelled run, to `ended`."""
    if tx.run("place.judge"):
        for step in ("cancel", "hold", "defer", "queue"):
            tx.run(f"place.{step}")


def record_ends(tx: Transaction) -> None:
    """Write down what stands in `ended`, and leave it there."""
    if tx.run("settle_ends.record"):
        tx.run("settle_ends.drop_deadlines")
        tx.run("settle_ends.drop_unbound")
        tx.run("settle_ends.drop_missing")


def notify_downstreams(tx: Transaction) -> None:
    """Work off `ended` into `told`."""
    tx.run("settle_ends.tell")
    tx.run("clear.ended")


def conclude_groups(tx: Transaction) -> None:
    """Work off `told` and `moving`; what ends by that is left to the maintainer."""
    if tx.run("settle_ends.hear"):
        tx.run("settle_ends.free")
        tx.run("settle_ends.decide")
        tx.run("settle_ends.leave_waiting")
    place_jobs(tx)
    record_ends(tx)
    defer_propagation(tx)


def defer_propagation(tx: Transaction) -> None:
    """Leave the telling of what stands in `ended` to the maintainer."""
    tx.run("settle_ends.postpone")


_REFUSED: Final = (*driver_errors.REFUSED, errors.StoreDataError)


def complete(
    tx: Transaction, key: SessionKey, ends: Sequence[AttemptReport], claims: Sequence[ClaimId]
) -> CompleteReply:
    """Accept what stands, settle its downstreams, and claim anew."""
    tx.clear()
    worker = worker_of(tx, key)
    answers = _accept(tx, worker, ends) if ends else []
    return CompleteReply(answers, take(tx, worker, claims) if claims else [])


def _accept(tx: Transaction, worker: Any, ends: Sequence[AttemptReport]) -> list[ReportResult]:
    _report(tx, ends)
    taken = tx.run("complete.take", worker=worker["id"], name=worker["name"])
    answers = [ReportResult.ACCEPTED] * taken if taken == len(ends) else _answers(tx)
    end_claims(tx)
    tx.run("complete.keep_results")
    tx.run("complete.keep_outputs")
    return answers


def _answers(tx: Transaction) -> list[ReportResult]:
    return [ReportResult(row["answer"]) for row in tx.rows("complete.answers")]


def _report(tx: Transaction, ends: Sequence[AttemptReport]) -> None:
    """Fill `report`; an end that SQLite refuses is replaced by its failure."""
    try:
        tx.fill("complete.report", _rows(ends))
    except _REFUSED:
        tx.run("clear.report")
        for place, end in enumerate(ends):
            _report_alone(tx, place, end)


def _report_alone(tx: Transaction, place: int, end: AttemptReport) -> None:
    try:
        tx.fill("complete.report", [_row(place, end)])
    except _REFUSED as cause:
        refused = Outcome.FAILED, Reason.RESULT_REFUSED, f"the report cannot be stored: {cause}"
        tx.fill(
            "complete.report",
            [(place, end.job, str(end.claim), end.fence, *refused, None, 0, "", "")],
        )


def _rows(ends: Sequence[AttemptReport]) -> Iterator[tuple[Any, ...]]:
    return (_row(place, end) for place, end in enumerate(ends))


def _row(place: int, end: AttemptReport) -> tuple[Any, ...]:
    # What is no plain number or text, as None and bytes are not, sqlite3 takes only after it has
    # asked around who could make it one: so what most ends lack is given as an empty text.
    return (
        place,
        end.job,
        str(end.claim),
        end.fence,
        str(end.outcome),
        str(end.reason or ""),
        end.message,
        end.exit_code,
        engine.seconds_to_micros(end.delay_seconds),
        "" if end.result is None else payloads.to_json(end.result),
        end.output or "",
    )
