"""Conditions as the API server stores them: merged with those that the object has already.

A condition that still holds keeps its transition time. What a Job or a Workflow has is decided in
`workron.scheduling.job_view`, what a pool has in `workerpools.conditions`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron_controller.jobs.cache import StatusReason


class StatusFact(NamedTuple):
    """One condition that holds, or does not."""

    type: str
    holds: bool
    reason: str
    message: str = ""


def conditions_of_refusal(refusal: StatusReason) -> list[StatusFact]:
    """Give those of an object that asks for what cannot be done."""
    return [
        StatusFact("Accepted", holds=False, reason=refusal.reason, message=refusal.message),
        StatusFact("Stalled", holds=True, reason=refusal.reason, message=refusal.message),
    ]


def merge_conditions(
    wanted: Sequence[StatusFact], before: Sequence[Any], generation: int, now: datetime
) -> list[Mapping[str, Any]]:
    """Word them for the cluster; what held before has held since then."""
    since = {
        (str(one.get("type")), str(one.get("status"))): parse_time(one.get("lastTransitionTime"))
        for one in before
        if isinstance(one, dict)
    }
    return [_worded(one, since, generation, now) for one in wanted]


def format_time(moment: datetime) -> str:
    """Word a time as the API server does: in whole seconds, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(moment: object) -> datetime | None:
    """Read such a time; None if it is none, for anybody may have written it."""
    try:
        read = datetime.fromisoformat(str(moment))
        return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _worded(
    one: StatusFact,
    since: Mapping[tuple[str, str], datetime | None],
    generation: int,
    now: datetime,
) -> Mapping[str, Any]:
    status = "True" if one.holds else "False"
    return {
        "type": one.type,
        "status": status,
        "reason": one.reason,
        "message": one.message,
        "lastTransitionTime": format_time(since.get((one.type, status)) or now),
        "observedGeneration": generation,
    }
