"""complete: taking a worker's reports in, one bad one without harm to the others.

Called by `worker`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, json_text
from workron.core.states import Reason
from workron.store.protocol import Answer, Completed, Outcome
from workron.store.sqlite import claiming, micros, refusals, settling, transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workron.core.ids import ClaimId, SessionKey
    from workron.store.protocol import End
    from workron.store.sqlite.transaction import Transaction

_REFUSED: Final = (*refusals.REFUSED, errors.StoreDataError)


def complete(
    tx: Transaction, key: SessionKey, ends: Sequence[End], claims: Sequence[ClaimId]
) -> Completed:
    """Accept what stands, settle its downstreams, and claim anew."""
    tx.clear()
    worker = claiming.worker_of(tx, key)
    answers = _accept(tx, worker, ends) if ends else []
    return Completed(answers, claiming.take(tx, worker, claims) if claims else [])


def _accept(tx: Transaction, worker: Any, ends: Sequence[End]) -> list[Answer]:
    taken = _report(tx, worker, ends)
    answers = [Answer.ACCEPTED] * taken if taken == len(ends) else _answers(tx, ends)
    settling.end_claims(tx)
    tx.run("complete.keep_results")
    tx.run("complete.keep_outputs")
    return answers


def _answers(tx: Transaction, ends: Sequence[End]) -> list[Answer]:
    reports = transaction.listed([end.job, str(end.claim), end.fence] for end in ends)
    return [Answer(row["answer"]) for row in tx.rows("complete.answers", reports=reports)]


def _report(tx: Transaction, worker: Any, ends: Sequence[End]) -> int:
    """Take the claims that end, and count them; an end that SQLite refuses is a failure."""
    try:
        return tx.fill("complete.report", _rows(tx, worker, ends))
    except _REFUSED:
        tx.run("clear.fallen")
        return sum(_report_alone(tx, worker, place, end) for place, end in enumerate(ends))


def _report_alone(tx: Transaction, worker: Any, place: int, end: End) -> int:
    about = place, worker["id"], worker["name"]
    try:
        return tx.fill("complete.report", [(*about, *_row(tx.now, end))])
    except _REFUSED as cause:
        refused = Outcome.FAILED, Reason.RESULT_REFUSED, f"the report cannot be stored: {cause}"
        row = (*about, end.job, str(end.claim), end.fence, *refused, None, tx.now, "", "")
        return tx.fill("complete.report", [row])


def _rows(tx: Transaction, worker: Any, ends: Sequence[End]) -> Iterator[tuple[Any, ...]]:
    who, name, now = worker["id"], worker["name"], tx.now
    return ((place, who, name, *_row(now, end)) for place, end in enumerate(ends))


def _row(now: int, end: End) -> tuple[Any, ...]:
    # Before sqlite3 takes what is no plain number or text, it asks around who could make it one: what
    # most ends have is given as text, and the statement makes of it what it stands for.
    return (
        end.job,
        str(end.claim),
        end.fence,
        str(end.outcome),
        str(end.reason or ""),
        end.message,
        end.exit_code,
        now + micros.of_seconds(end.delay_seconds) if end.delay_seconds else now,
        "" if end.result is None else json_text.worded(end.result),
        end.output or "",
    )
