"""The result of an action: the snapshot after it, with details for invariants and traces."""

from __future__ import annotations

from typing import NamedTuple

from tests.protocol.rare_branches import RareBranch
from tests.protocol.rules import Fault, Rules
from tests.protocol.state import Answer, Claim, Shared, Worker


class Step(NamedTuple):
    """A step of one worker, or of the store or maintainer with one worker.

    It reads and changes that worker and the shared part only, so that the explorer computes it once
    for all snapshots with these two.
    """

    action: str
    shared: Shared
    worker: Worker
    is_fault: bool = False
    marks: tuple[RareBranch, ...] = ()
    granted: Claim | None = None
    """A claim that the store made."""
    wrote: Claim | None = None
    """The claim of an accepted write."""
    is_reap: bool = False
    was_answered_stale: bool = False
    received: Answer | None = None
    """The answer to a heartbeat that its agent received."""


class WideStep(NamedTuple):
    """A step that changes the shared part, and every worker by the same rule.

    `change` names the rule in `wide.CHANGES`; None leaves the workers as they are.
    """

    action: str
    shared: Shared
    change: str | None = None
    is_fault: bool = False
    marks: tuple[RareBranch, ...] = ()
    gap: int | None = None
    """Ticks since the last observation, if this changes them."""
    takes_time: bool = False
    """Possible only if no action is pending that takes less than a tick."""


def spent(shared: Shared, fault: Fault, rules: Rules) -> Shared | None:
    """The shared part with one more fault used, or None if none is left."""
    used = rules.spend(shared.used, fault)
    return None if used is None else shared._replace(used=used)
