"""Every step that one worker can take, or that befalls it; the other steps are in `wide`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tests.protocol import agent, beats, calls, maintainer, mishaps, sessions
from tests.protocol.rules import Rules
from tests.protocol.state import Shared, Worker
from tests.protocol.step import Step

Action = Callable[[Shared, Worker, Rules], Iterator[Step]]

ACTIONS: Final[tuple[Action, ...]] = (
    agent.ask,
    calls.call,
    calls.hear_grant,
    agent.command_ends,
    beats.beat,
    beats.hear,
    agent.kill,
    agent.wake,
    agent.drain,
    sessions.boot,
    sessions.register,
    sessions.copy,
    calls.copy,
    calls.copy_arrives,
    maintainer.reap,
    maintainer.reap_proven,
    mishaps.cut,
    mishaps.freeze,
    mishaps.die,
)


def steps(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """All that can happen to this worker now."""
    for action in ACTIONS:
        yield from action(shared, worker, rules)
