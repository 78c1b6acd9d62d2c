"""Conditions as the API server stores them, and how statuses are compared. Pure.

A condition that still holds keeps its transition time. What a Job or a Workflow reports is decided
in `workron.scheduling.job_view`, and what a WorkerPool reports in `workerpools.status`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {}, 0)


@dataclass(frozen=True, slots=True)
class StatusReason:
    """Why something is not possible: a reason in CamelCase, and a sentence for users."""

    reason: str
    message: str


class ConditionValue(NamedTuple):
    """A condition without its times."""

    type: str
    holds: bool
    reason: str
    message: str = ""


def merge_conditions(
    values: Sequence[ConditionValue], before: Sequence[Any], generation: int, now: datetime
) -> list[Mapping[str, Any]]:
    """Return the conditions to store; those that held before keep their transition time."""
    since = {
        (str(one.get("type")), str(one.get("status"))): parse_time(one.get("lastTransitionTime"))
        for one in before
        if isinstance(one, dict)
    }
    merged: list[Mapping[str, Any]] = []
    for value in values:
        status = "True" if value.holds else "False"
        condition = {
            "type": value.type,
            "status": status,
            "reason": value.reason,
            "message": value.message,
            "lastTransitionTime": format_time(since.get((value.type, status)) or now),
            "observedGeneration": generation,
        }
        merged.append(condition)
    return merged


def statuses_differ(status: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Return whether two statuses differ beyond empty fields, which the API server may drop."""
    return _without_empty(status) != _without_empty(stored)


def _without_empty(status: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in status.items() if value not in _EMPTY}


def format_time(moment: datetime) -> str:
    """Format a time as the API server does: in UTC and whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(moment: object) -> datetime | None:
    """Parse such a time; None if it is malformed, as a user may have written it."""
    try:
        read = datetime.fromisoformat(str(moment))
        return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
