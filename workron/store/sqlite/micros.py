"""Times as SQLite keeps them: whole microseconds since 1970 in UTC, so that order is numeric.

Called by all modules of this room that pass a time in or give one out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, overload

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def of_time(time: datetime) -> int:
    """Count from 1970 to an aware time; exact, as a float would not be."""
    return of_delta(time - _EPOCH)


def of_delta(delta: timedelta) -> int:
    """Count a duration."""
    return delta // _MICROSECOND


def of_seconds(seconds: float) -> int:
    """Count a duration. OverflowError or ValueError when it is not finite."""
    return round(seconds * 1_000_000)


@overload
def to_time(micros: int) -> datetime: ...
@overload
def to_time(micros: None) -> None: ...
def to_time(micros: int | None) -> datetime | None:
    """Give the time of a column; null stays None."""
    return None if micros is None else _EPOCH + micros * _MICROSECOND
