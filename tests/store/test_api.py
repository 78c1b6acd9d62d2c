"""Rows become values: the columns that have a decoder are decoded, and nulls stay."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import Reason
from workron.store import types
from workron.store.sqlite.store import SqliteStore

_ATTEMPT: dict[str, Any] = {
    "job": 1,
    "attempt": 2,
    "outcome": "Failed",
    "reason": "ExitCode",
    "exit_code": 3,
    "worker": "worker",
    "started_at": 0,
    "finished_at": 1_000_000,
}


def _convert(kind: Any, row: dict[str, Any]) -> Any:
    return SqliteStore.__new__(SqliteStore)._converter(kind)(row)


def test_columns_are_decoded_by_name() -> None:
    first, last = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert _convert(types.AttemptRow, _ATTEMPT) == types.AttemptRow(
        JobId(1), 2, "Failed", Reason.EXIT_CODE, 3, "worker", first, last
    )


def test_booleans_and_uuids_are_decoded_when_the_dialect_has_none() -> None:
    row = {"run": 1, "uid": str(UUID(int=7)), "kind": "Job", "namespace": "space", "name": "a"}
    owned = _convert(types.OwnedRun, row | {"generation": 1, "submitted_at": 0, "has_ended": 1})
    assert (owned.uid, owned.kind, owned.has_ended) == (UUID(int=7), Kind.JOB, True)


def test_nulls_stay_none() -> None:
    attempt = _convert(types.AttemptRow, _ATTEMPT | {"reason": None, "finished_at": None})
    assert attempt.reason is None
    assert attempt.finished_at is None
