"""How long jobs took: the row of one that was tried again tells of its first start alone.

Called by the commands that show times, and by `run --output-dir`. What a row does not tell is asked
of the ended attempts.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from workron.core import states
from workron.core.plan import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from workron.core.ids import JobId
    from workron.store.protocol import JobRow, ReaderDoor

_AT_ONCE: Final = 100


class Span(NamedTuple):
    """When something began, and how many seconds it took."""

    began: datetime | None
    seconds: float | None


def is_told(row: JobRow) -> bool:
    """Whether a row tells by itself when what it shows began."""
    return row.kind is not Kind.JOB or row.attempts <= 1


def of_row(row: JobRow) -> Span:
    """Give the time from the first start to the end: no attempt took longer."""
    if row.started_at is None or row.finished_at is None:
        return Span(row.started_at, None)
    return Span(row.started_at, max(0.0, (row.finished_at - row.started_at).total_seconds()))


async def last(reader: ReaderDoor, row: JobRow) -> Span:
    """Give the time of the attempt with which a job ended, or of a group from start to end."""
    if is_told(row) or row.state not in states.ENDS:
        return of_row(row)
    attempts = await reader.attempts(row.job)
    if not attempts:
        return of_row(row)
    began = attempts[-1].started_at
    return Span(began, max(0.0, (attempts[-1].finished_at - began).total_seconds()))


async def each(reader: ReaderDoor, rows: Sequence[JobRow]) -> Mapping[JobId, Span]:
    """Give the times of many, some asked for at once."""
    spans: dict[JobId, Span] = {}
    for at in range(0, len(rows), _AT_ONCE):
        some = rows[at : at + _AT_ONCE]
        found = await asyncio.gather(*(last(reader, row) for row in some))
        spans |= {row.job: span for row, span in zip(some, found, strict=True)}
    return spans
