"""complete: taking a worker's reports in, one bad one without harm to the others.

Called by `worker`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, json_text
from workron.core.states import Reason
from workron.store.protocol import Answer, Completed, Outcome
from workron.store.sqlite import claiming, micros, refusals, settling

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
    _report(tx, ends)
    taken = tx.run("complete.take", worker=worker["id"], name=worker["name"])
    answers = [Answer.ACCEPTED] * taken if taken == len(ends) else _answers(tx)
    settling.end_claims(tx)
    tx.run("complete.keep_results")
    tx.run("complete.keep_outputs")
    return answers


def _answers(tx: Transaction) -> list[Answer]:
    return [Answer(row["answer"]) for row in tx.rows("complete.answers")]


def _report(tx: Transaction, ends: Sequence[End]) -> None:
    """Fill `report`; an end that SQLite refuses is replaced by its failure."""
    try:
        tx.fill("complete.report", _rows(ends))
    except _REFUSED:
        tx.run("clear.report")
        for place, end in enumerate(ends):
            _report_alone(tx, place, end)


def _report_alone(tx: Transaction, place: int, end: End) -> None:
    try:
        tx.fill("complete.report", [_row(place, end)])
    except _REFUSED as cause:
        refused = Outcome.FAILED, Reason.RESULT_REFUSED, f"the report cannot be stored: {cause}"
        tx.fill(
            "complete.report",
            [(place, end.job, str(end.claim), end.fence, *refused, None, 0, "", "")],
        )


def _rows(ends: Sequence[End]) -> Iterator[tuple[Any, ...]]:
    return (_row(place, end) for place, end in enumerate(ends))


def _row(place: int, end: End) -> tuple[Any, ...]:
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
        micros.of_seconds(end.delay_seconds),
        "" if end.result is None else json_text.worded(end.result),
        end.output or "",
    )
