"""What the conditions of a Job or a Workflow say of its state. Pure; called by `status`.

Made for those who wait: `kubectl wait`, and what reads conditions as kstatus does (Helm, Argo CD,
Flux). While it may still come to an end that is good, Reconciling is True; an end that is not good
is Failed, and Stalled, since nothing more will be done about it. That there was nothing to do is a
good end: a cleanup that is not needed has nobody look for what went wrong.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from workron.core.states import Reason, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron_controller.jobs.cache import StatusReason


class StatusFact(NamedTuple):
    """One condition that holds, or does not."""

    type: str
    holds: bool
    reason: str
    message: str = ""


def conditions_of_state(state: State, reason: str | None, message: str | None) -> list[StatusFact]:
    """Give those of an object whose job stands so."""
    word, told = reason or str(state), message or ""
    accepted = StatusFact("Accepted", holds=True, reason="Stored")
    if state is State.SUCCEEDED or (state is State.SKIPPED and reason == Reason.NOT_NEEDED):
        return [accepted, StatusFact("Complete", holds=True, reason=word, message=told)]
    if state in {State.FAILED, State.CANCELLED, State.SKIPPED}:
        ends = [StatusFact(kind, True, word, told) for kind in ("Failed", "Stalled")]  # noqa: FBT003
        return [accepted, *ends]
    suspended = [StatusFact("Suspended", holds=True, reason=word)] if word == "Suspended" else []
    return [accepted, *suspended, StatusFact("Reconciling", holds=True, reason=word, message=told)]


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
