"""What an action yields: the snapshot after it, and what the invariants and the reader need."""

from __future__ import annotations

from typing import NamedTuple

from tests.protocol.rules import Fault, Rules
from tests.protocol.sometimes import Sometimes
from tests.protocol.state import Answer, Claim, Shared, Worker


class Step(NamedTuple):
    """A step of one worker, or of somebody else with one worker.

    It sees and changes that worker and the shared part only, so that the explorer works it out
    once for all snapshots that have these two in common.
    """

    action: str
    shared: Shared
    worker: Worker
    is_fault: bool = False
    marks: tuple[Sometimes, ...] = ()
    granted: Claim | None = None
    """A claim that the store made."""
    wrote: Claim | None = None
    """A claim in whose name the store accepted a write."""
    is_reap: bool = False
    was_told_stale: bool = False
    heard: Answer | None = None
    """The answer to a beat that its agent took in."""


class WideStep(NamedTuple):
    """A step that changes the shared part, and every worker by the same rule.

    `change` names the rule in `wide.CHANGES`; None leaves the workers as they are.
    """

    action: str
    shared: Shared
    change: str | None = None
    is_fault: bool = False
    marks: tuple[Sometimes, ...] = ()
    gap: int | None = None
    """Ticks since the last look, where this changes them."""
    takes_time: bool = False
    """Possible only when nobody has something to do that is faster than a tick."""


def spent(shared: Shared, fault: Fault, rules: Rules) -> Shared | None:
    """The shared part with one more fault used up, or None if none is left."""
    used = rules.spend(shared.used, fault)
    return None if used is None else shared._replace(used=used)
