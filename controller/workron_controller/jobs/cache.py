"""Every Job and Workflow that this replica has observed, with the state of its processing.

Only the transitions of `CachedObject` change this state; other modules read its fields. The cache
keeps little of the spec: the store and the cluster have it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import TERMINAL_STATES, State
from workron_controller.kube.conditions import StatusReason

_TERMINAL_PHASES: Final = frozenset(str(state) for state in TERMINAL_STATES)


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """One generation of an object, as a watch or a list returned it."""

    uid: UUID
    kind: Kind
    namespace: str
    name: str
    generation: int
    status: Mapping[str, Any] = field(default_factory=dict)
    ttl_seconds: int | None = None
    is_suspended: bool = False
    pools: tuple[str, ...] = ()
    """The pools of a Workflow's tasks. The pool of a Job is in its row of the store."""


@dataclass(slots=True, eq=False)
class CachedObject:
    """One object and how far it was processed."""

    latest: ObservedObject
    """The newest generation that was observed."""
    run: JobId | None = None
    """The run in the store; None while it is unknown, and for a rejected object."""
    submitted_generation: int = 0
    """The newest generation that the store has, or that was rejected; 0 for none."""
    rejection: StatusReason | None = None
    """Why the submitted generation cannot be run."""
    end_state: State | None = None
    """The state of its job if it has ended."""
    written_status: Mapping[str, Any] | None = None
    """The status that this replica wrote last."""
    synced_inputs: Hashable = None
    """The input of the last computed status; None: compute it again."""
    pending_since: float | None = None
    """Since when a status waits to be written, on the monotonic clock."""

    # As the cluster has it.

    @property
    def uid(self) -> UUID:
        """The uid, which never changes."""
        return self.latest.uid

    @property
    def log_fields(self) -> dict[str, str]:
        """The fields by which log events name the object."""
        one = self.latest
        return {"kind": one.kind, "namespace": one.namespace, "name": one.name}

    @property
    def status(self) -> Mapping[str, Any]:
        """The status that this replica wrote last, else the observed one. Users can edit it."""
        return self.latest.status if self.written_status is None else self.written_status

    @property
    def phase(self) -> str:
        """The phase in the status; empty if it is missing or malformed."""
        phase = self.status.get("phase")
        return phase if isinstance(phase, str) else ""

    @property
    def is_finished(self) -> bool:
        """Whether the status says that it has ended."""
        return self.phase in _TERMINAL_PHASES

    def observed(self, latest: ObservedObject) -> None:
        """Take over what was observed, unless it is older than what is known."""
        if latest.generation >= self.latest.generation:
            self.latest = latest

    # As the store has it.

    @property
    def needs_submit(self) -> bool:
        """Whether the store lacks this generation; finished objects are never run again."""
        is_newer = self.latest.generation > self.submitted_generation
        return is_newer and not (self.run is None and self.is_finished)

    @property
    def is_active(self) -> bool:
        """Whether its status may still have to change."""
        if self.run is None:
            return self.rejection is not None
        return self.end_state is None or self.phase != self.end_state

    def run_found(self, run: JobId) -> None:
        """Record the run that the store has for it."""
        self.run = run

    def submitted(self, run: JobId, generation: int) -> None:
        """Record the run and the generation that the store has."""
        self.run, self.submitted_generation, self.rejection = run, generation, None

    def rejected(self, reason: StatusReason) -> None:
        """Record that the newest generation cannot be run."""
        self.rejection, self.submitted_generation = reason, self.latest.generation

    def state_read(self, state: State) -> None:
        """Record the state of its job."""
        self.end_state = state if state in TERMINAL_STATES else None

    # Its status.

    def status_synced(self, inputs: Hashable) -> None:
        """Record what the status was computed from; None has it computed again."""
        self.synced_inputs = inputs

    def status_pending(self, now: float) -> None:
        """Record that a status waits, unless one waits already."""
        if self.pending_since is None:
            self.pending_since = now

    def status_settled(self) -> None:
        """Record that no status waits: it was written, refused, or is not needed."""
        self.pending_since = None

    def status_written(self, status: Mapping[str, Any], inputs_before: Hashable) -> None:
        """Record a status that the API server has accepted.

        `inputs_before` are the `synced_inputs` from before the request. If they have changed since,
        the status may be outdated even if they change back: compute it again.
        """
        self.written_status = status
        if self.synced_inputs != inputs_before:
            self.synced_inputs = None

    def status_unknown(self) -> None:
        """Forget what was written: others may have written since. Trust what is observed."""
        self.written_status = self.synced_inputs = None


class ObjectCache:
    """The objects by uid; a deleted object's name may return with another uid."""

    def __init__(self) -> None:
        self._objects: dict[UUID, CachedObject] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[CachedObject]:
        # A copy: callers await while they iterate, and metrics are read in another thread.
        return iter(list(self._objects.values()))

    def get(self, uid: UUID) -> CachedObject | None:
        """Return the object with this uid."""
        return self._objects.get(uid)

    def upsert(self, latest: ObservedObject) -> CachedObject:
        """Add the object or update it, and return its entry."""
        cached = self._objects.setdefault(latest.uid, CachedObject(latest))
        cached.observed(latest)
        return cached

    def mark_all_unsynced(self) -> None:
        """Have every status computed again from what is observed."""
        for cached in self._objects.values():
            cached.status_unknown()

    def remove(self, uid: UUID) -> None:
        """Remove an object that is not in the cluster anymore."""
        self._objects.pop(uid, None)
