"""What the answer to a beat asks of the agent: which commands to end, which claims to hand back.

Called by `loop` with what it knew when it sent the beat and what it knows now, for while the
beat was on its way claims came and went.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workron.store.protocol import Mark

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from workron.core.ids import ClaimId
    from workron.store.protocol import Beat, Right

_ENDING: Final = frozenset({Mark.CANCEL, Mark.EXPIRE})


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The claims of an agent at one moment."""

    running: AbstractSet[ClaimId]
    known: AbstractSet[ClaimId]
    """All of them: asked for, running, or over and not reported yet."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What is to be done."""

    kill: AbstractSet[ClaimId]
    """Somebody asked for their end; it is reported."""
    drop: AbstractSet[ClaimId]
    """Taken back by the store: killed, and never spoken of again."""
    release: Sequence[Right]
    """The store counts them as ours, but nothing here runs or ran them."""


def read(beat: Beat, before: Knowledge, now: Knowledge) -> Orders:
    """Compare the store's list with our own."""
    held = {one.claim for one in beat.held}
    ending = {one.claim for one in beat.held if one.mark in _ENDING}
    return Orders(
        kill=ending & now.running,
        # A claim that came while the beat was on its way is not on a list made before it.
        drop=(before.running & now.running) - held,
        release=[one.right for one in beat.held if one.claim not in before.known | now.known],
    )
