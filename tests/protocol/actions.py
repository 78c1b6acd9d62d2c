"""Every step of one worker, and its faults; the other steps are in `wide`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tests.protocol import agent, calls, heartbeats, maintainer, sessions, worker_faults
from tests.protocol.rules import Rules
from tests.protocol.state import Shared, Worker
from tests.protocol.step import Step

Action = Callable[[Shared, Worker, Rules], Iterator[Step]]

ACTIONS: Final[tuple[Action, ...]] = (
    agent.ask,
    calls.call,
    calls.receive_grant,
    agent.command_ends,
    heartbeats.heartbeat,
    heartbeats.receive,
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
    worker_faults.cut,
    worker_faults.freeze,
    worker_faults.die,
)


def steps(shared: Shared, worker: Worker, rules: Rules) -> Iterator[Step]:
    """All steps that are possible for this worker now."""
    for action in ACTIONS:
        yield from action(shared, worker, rules)
