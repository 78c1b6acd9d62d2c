"""What is logged of a worker and of each attempt: names, numbers and outcomes.

Called by `loop`. Nothing that a job brings with it is logged, such as its environment, its command
or its output, and no message that may quote from these; only the id of its trace, when it is one.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import structlog

from workron.core import trace
from workron_worker.ledger import Fate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from structlog.typing import EventDict

    from workron.store.protocol import Claimed, End, Registration, Session

_log = structlog.get_logger(__name__)
_NAMES: Final[ContextVar[Mapping[str, Any]]] = ContextVar("names", default=MappingProxyType({}))
_FATES: Final = {
    Fate.RELEASE: "Released",
    Fate.DROP: "TakenBack",
    Fate.LOST_ALONE: "Lost",
    Fate.LOST_TOGETHER: "Lost",
}


def name_attempt(_: object, __: str, event: EventDict) -> EventDict:
    """Add the names of the attempt in whose task something is logged; a processor of structlog's.

    One variable, where structlog's own would be one for each name, at every line.
    """
    return {"event": event["event"], **_NAMES.get(), **event}


def registered(registration: Registration, session: Session) -> None:
    """Say that a worker has entered."""
    _log.info(
        "worker registered",
        worker=registration.name,
        slots=registration.slots,
        lease_seconds=session.lease_seconds,
    )


def began(claimed: Claimed, worker: str) -> None:
    """Say that an attempt begins; all that is logged in this task from now on names it."""
    _NAMES.set(_names(claimed, worker))
    _log.info("attempt began")


def ended(fate: Fate, end: End | None) -> None:
    """Say how the attempt ended."""
    if end is None or fate is not Fate.REPORT:
        _log.info("attempt ended", outcome=_FATES.get(fate, _FATES[Fate.RELEASE]))
        return
    reason = end.reason and end.reason.value
    _log.info("attempt ended", outcome=end.outcome.value, reason=reason, exit_code=end.exit_code)


def _names(claimed: Claimed, worker: str) -> dict[str, Any]:
    names = {
        "job": claimed.job,
        "name": _path(claimed),
        "attempt": claimed.attempt,
        "fence": claimed.fence,
        "worker": worker,
    }
    of_trace = trace.id_of(trace.parent_of(claimed.spec.body))
    return names | {"trace_id": of_trace} if of_trace else names


def _path(claimed: Claimed) -> str:
    index = "" if claimed.index is None else f"/{claimed.index}"
    return f"{claimed.namespace}/{claimed.root}/{claimed.name}{index}"
