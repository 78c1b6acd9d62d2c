"""What is logged of a worker and of each attempt: names, numbers and outcomes.

Called by `loop` and `attempts`. Of an attempt there is one line at its end, and one before if it
runs for longer than a beat of the worker: of thousands that take a moment each, two would say no
more. Nothing that a job brings with it is logged, such as its environment, its command or its
output, and no message that may quote from these; only the id of its trace, when it is one.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import structlog

from workron.core import trace
from workron_worker.ledger import Fate

if TYPE_CHECKING:
    from structlog.typing import EventDict

    from workron.store.protocol import Claimed, End, Registration, Session
    from workron_worker.ledger import Running

_ATTEMPT: Final[ContextVar[tuple[Claimed, str] | None]] = ContextVar("attempt", default=None)
_FATES: Final = {
    Fate.RELEASE: "Released",
    Fate.DROP: "TakenBack",
    Fate.LOST_ALONE: "Lost",
    Fate.LOST_TOGETHER: "Lost",
}


def name_attempt(_: object, __: str, event: EventDict) -> EventDict:
    """Add the names of the attempt in whose task something is logged, for structlog."""
    about = _ATTEMPT.get()
    return event if about is None else {"event": event["event"], **_names(*about), **event}


class Journal:
    """What one agent logs."""

    def __init__(self, registration: Registration) -> None:
        self._worker = registration.name
        self._slots = registration.slots
        # Bound once: a proxy would look up how to log at each line.
        self._log = structlog.get_logger(__name__).bind()

    def registered(self, session: Session) -> None:
        """Say that the worker has entered."""
        self._log.info(
            "worker registered",
            worker=self._worker,
            pool=f"{session.namespace}/{session.pool}",
            slots=self._slots,
            lease_seconds=session.lease_seconds,
        )

    def shift_over(self, limit: str) -> None:
        """Say that the worker drains by itself, and which of its limits it has met."""
        self._log.info("worker drains: its shift is over", worker=self._worker, limit=limit)

    def name(self, claimed: Claimed) -> None:
        """Name an attempt in all that is logged in this task from now on."""
        _ATTEMPT.set((claimed, self._worker))

    def runs(self, claimed: Claimed) -> None:
        """Say that an attempt has begun and goes on."""
        self._log.info("attempt runs", **_names(claimed, self._worker))

    def lost(self, claimed: Claimed, error: Exception) -> None:
        """Say that what ran a command is gone."""
        self._log.warning("command was lost", **_names(claimed, self._worker), error=str(error))

    def ended(self, running: Running, end: End | None, seconds: float) -> None:
        """Say how the attempt ended, and when after it was claimed."""
        about = _names(running.claimed, self._worker)
        if end is None or running.fate is not Fate.REPORT:
            about["outcome"] = _FATES.get(running.fate, _FATES[Fate.RELEASE])
        else:
            about["outcome"] = end.outcome.value
            about["reason"] = end.reason and end.reason.value
            about["exit_code"] = end.exit_code
        about["seconds"] = round(seconds, 3)
        self._log.info("attempt ended", **about)


def _names(claimed: Claimed, worker: str) -> dict[str, Any]:
    # Both may be larger than what JavaScript and jq read as a number without rounding it.
    names = {
        "job": str(claimed.job),
        "name": _path(claimed),
        "attempt": claimed.attempt,
        "fence": str(claimed.fence),
        "worker": worker,
    }
    if of_trace := trace.id_of(trace.parent_of(claimed.spec.body)):
        names["trace_id"] = of_trace
    return names


def _path(claimed: Claimed) -> str:
    index = "" if claimed.index is None else f"/{claimed.index}"
    return f"{claimed.namespace}/{claimed.root}/{claimed.name}{index}"
