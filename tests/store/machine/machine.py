"""The state machine: a random walk over the verbs of a store, each step held against the oracle.

Each step draws one seed, and all else from that: left to itself, Hypothesis likes the first and
the last of everything and leaves whole rules out, and most walks then lead nowhere. What it is
here for is to find the shortest walk that fails. Run by test_store_agrees_with_the_oracle.py.
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
    """Have a run that runs pulled about, and its claims end or fall."""
    workers.claim(walk)
    for take in (
        *walk.chance.choices([users.hold, users.resume, maintainer.expire, users.cancel], k=2),
        walk.chance.choice([workers.complete, workers.release, maintainer.reap]),
    ):
        take(walk)


STEPS: dict[Callable[[Walk], None], int] = {
    users.submit: 12,
    users.submit_again: 2,
    users.hold: 5,
    users.resume: 5,
    users.cancel: 3,
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
    workers.leave: 1,
    workers.act_when_gone: 1,
    interfere: 10,
    maintainer.reap: 9,
    maintainer.prove: 2,
    maintainer.drain: 1,
    maintainer.pass_time: 6,
    maintainer.expire: 4,
    maintainer.propagate_some: 6,
}
"""How often each is taken."""


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
        """Start with something to do and somebody to do it."""
        self.salt = seed
        self.walk.chance = Random(seed)
        for name in ("anna", "ben"):
            workers.enter(self.walk, name, "default")
        for _ in range(2):
            users.submit(self.walk)

    @rule(seed=SEEDS)
    def step(self, seed: int) -> None:
        # Hypothesis likes some seeds, too: let them mean something else in each walk.
        self.walk.chance = Random(f"{self.salt} {seed}")
        (take,) = self.walk.chance.choices(list(STEPS), list(STEPS.values()))
        take(self.walk)

    @invariant()
    def store_is_as_the_oracle_says(self) -> None:
        self.walk.run(self.walk.compare())
