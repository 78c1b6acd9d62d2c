"""All objects that this replica has seen and that are there still, each in few words.

Made of what watches and lists bring, by `intake`; `telling` goes through it to find what is to be
told. Of what an object asks for hardly anything is kept: the store has it, and the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from workron.core.states import TERMINAL_STATES

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping
    from uuid import UUID

    from workron.core.ids import JobId
    from workron.core.plan import Kind
    from workron.core.states import State


_ENDS: Final = frozenset(str(state) for state in TERMINAL_STATES)


@dataclass(frozen=True, slots=True)
class StatusReason:
    """Why something is not done: a word, and a sentence for a person."""

    reason: str
    message: str


@dataclass(slots=True)
class CachedObject:
    """One object: who it is, which edition of it was seen last, and what its status said."""

    uid: UUID
    kind: Kind
    namespace: str
    name: str
    generation: int
    status: Mapping[str, Any] = field(default_factory=dict)
    ttl_seconds: int | None = None
    is_suspended: bool = False
    """Whether it asks that nothing of it be started."""
    pools: tuple[str, ...] = ()
    """Those that a Workflow's tasks name; which one a Job is in is told with its row."""
    run: JobId | None = None
    """What the store made of it; None: that is not known yet, or it was refused."""
    heard: int = 0
    """The edition that the store has heard of, as far as this replica knows."""
    end: State | None = None
    """How its job has ended, as the store says, as far as this replica knows."""
    refusal: StatusReason | None = None
    """What it asks for cannot be done, and its edition `heard` was judged so."""
    told: Mapping[str, Any] | None = None
    """What this replica wrote into its status last, which may not have come back yet."""
    looked: Hashable = None
    """How its job stood when that was told."""
    late_since: float | None = None
    """Since when there is something that it could say and does not, on the monotonic clock."""

    @property
    def is_unheard(self) -> bool:
        """Whether the store has made a job of it, and not heard of its newest edition."""
        return self.run is not None and self.heard < self.generation

    @property
    def is_live(self) -> bool:
        """Whether there may be something to tell of it."""
        if self.run is None:
            return self.refusal is not None
        return self.end is None or self.phase != self.end

    @property
    def is_told_over(self) -> bool:
        """Whether its status says that it has ended."""
        return self.phase in _ENDS

    @property
    def phase(self) -> str:
        """Give what its status says of it in one word; empty if that is none."""
        phase = self.said.get("phase")
        return phase if isinstance(phase, str) else ""

    @property
    def said(self) -> Mapping[str, Any]:
        """Give its status, as far as it is known here; anybody may have written anything there."""
        return self.status if self.told is None else self.told


def generation(raw: Mapping[str, Any]) -> int:
    """Say which edition of an object this is; the first where that is not said."""
    given = raw["metadata"].get("generation")
    return given if isinstance(given, int) else 1


class ObjectCache:
    """By uid: a name may come again and mean another object."""

    def __init__(self) -> None:
        self._seen: dict[UUID, CachedObject] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[CachedObject]:
        return iter(list(self._seen.values()))

    def get(self, uid: UUID) -> CachedObject | None:
        """Give what is known of an object."""
        return self._seen.get(uid)

    def note(self, seen: CachedObject) -> CachedObject:
        """Take in what was seen now, unless something newer was, and give all that is known."""
        known = self._seen.setdefault(seen.uid, seen)
        if known is not seen and seen.generation >= known.generation:
            known.generation = seen.generation
            known.ttl_seconds = seen.ttl_seconds
            known.is_suspended = seen.is_suspended
            known.pools = seen.pools
            known.status = seen.status
        return known

    def doubt(self) -> None:
        """Have all be looked at anew: what was told may have been written over since."""
        for seen in self._seen.values():
            seen.told = seen.looked = None

    def forget(self, uid: UUID) -> None:
        """Take it out: it is gone from the cluster."""
        self._seen.pop(uid, None)
