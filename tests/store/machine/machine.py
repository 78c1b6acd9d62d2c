"""The state machine: a random walk over the methods of a store, compared with the oracle.

Each step draws one seed and all its choices from that. Hypothesis prefers the first and the last
of several choices and omits whole rules, so most of its walks would do little. Its task here is to
shorten a walk that fails.
"""

from collections.abc import Callable
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.store.behaviour.databases import DatabaseUnderTest
from tests.store.machine import maintainer, users, workers
from tests.store.machine.walk import Walk

SEEDS = st.integers(0, 2**64 - 1)


def interfere(walk: Walk) -> None:
    """Change a running run in several ways, and end or lose its claims."""
    workers.claim(walk)
    for take in (
        *walk.chance.choices([users.suspend, users.resume, maintainer.expire, users.cancel], k=2),
        walk.chance.choice([workers.complete, workers.release, maintainer.reap]),
    ):
        take(walk)


STEPS: dict[Callable[[Walk], None], int] = {
    users.submit: 12,
    users.submit_again: 2,
    users.suspend: 5,
    users.resume: 5,
    users.cancel: 3,
    users.delete: 3,
    workers.work: 14,
    workers.work_long: 5,
    workers.claim: 14,
    workers.claim_again: 3,
    workers.complete: 12,
    workers.complete_again: 3,
    workers.release: 5,
    workers.heartbeat: 4,
    workers.register: 6,
    workers.register_again: 1,
    workers.deregister: 1,
    workers.act_when_reaped: 1,
    interfere: 10,
    maintainer.reap: 9,
    maintainer.prove: 2,
    maintainer.drain: 1,
    maintainer.pass_time: 6,
    maintainer.expire: 4,
    maintainer.propagate_some: 6,
}
"""The weight of each step."""


class StoreMachine(RuleBasedStateMachine):
    """The rules; `make_database` is set by a subclass, one for each store."""

    make_database: Callable[[], DatabaseUnderTest]

    def __init__(self) -> None:
        super().__init__()
        self.walk = Walk(type(self).make_database)

    def teardown(self) -> None:
        self.walk.close()

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        """Start with two runs and two workers."""
        self.salt = seed
        self.walk.chance = Random(seed)
        for name in ("anna", "ben"):
            workers.enter(self.walk, name, "default")
        for _ in range(2):
            users.submit(self.walk)

    @rule(seed=SEEDS)
    def step(self, seed: int) -> None:
        # Hypothesis prefers some seeds too, so they have another meaning in each walk.
        self.walk.chance = Random(f"{self.salt} {seed}")
        (take,) = self.walk.chance.choices(list(STEPS), list(STEPS.values()))
        take(self.walk)

    @invariant()
    def store_is_as_the_oracle_says(self) -> None:
        self.walk.run(self.walk.compare())
