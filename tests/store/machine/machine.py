"""The state machine: a random walk over the verbs of a store, each step held against the oracle.

The rules are few and draw their verb, because Hypothesis leaves whole rules out of most walks, and
a walk without claims leads nowhere. Run by test_store_agrees_with_the_oracle.py.
"""

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.store.behaviour.grounds import Ground
from tests.store.machine import comparison, people, upkeep, workers
from tests.store.machine.walk import Draw, Walk

Step = Callable[[Walk, Draw], None]

# The more often a step is named, the more often it is taken; Hypothesis likes the ends of a list.
PEOPLE: list[Step] = [people.submit, people.sweep, people.submit_again, people.sweep, people.submit]
WORKERS: list[Step] = [
    workers.work,
    workers.claim,
    workers.complete,
    workers.beat,
    workers.register,
    workers.complete_again,
    workers.release,
    workers.leave,
    workers.claim_again,
    workers.register_again,
    workers.act_when_gone,
    workers.register,
    workers.complete,
    workers.claim,
    workers.work,
]
UPKEEP: list[Step] = [
    upkeep.reap,
    upkeep.pass_time,
    upkeep.settle_a_little,
    upkeep.prove,
    upkeep.drain,
    upkeep.expire,
    upkeep.pass_time,
    upkeep.reap,
]


def _steps(steps: list[Step]) -> st.SearchStrategy[Step]:
    return st.sampled_from(steps)


class StoreMachine(RuleBasedStateMachine):
    """The rules; `make_ground` is set by a subclass, one for each store."""

    make_ground: Callable[[], Ground]

    def __init__(self) -> None:
        super().__init__()
        self.walk = Walk(type(self).make_ground)

    def teardown(self) -> None:
        self.walk.close()

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Start with something to do and somebody to do it."""
        for name in ("anna", "ben"):
            workers.enter(self.walk, name, "default")
        for _ in range(2):
            people.submit(self.walk, data.draw)

    @rule(step=_steps(PEOPLE), data=st.data())
    def ask(self, step: Step, data: st.DataObject) -> None:
        step(self.walk, data.draw)

    @rule(step=_steps(WORKERS), data=st.data())
    def serve(self, step: Step, data: st.DataObject) -> None:
        step(self.walk, data.draw)

    @rule(step=_steps(WORKERS), data=st.data())
    def serve_on(self, step: Step, data: st.DataObject) -> None:
        step(self.walk, data.draw)

    @rule(step=_steps(UPKEEP), data=st.data())
    def maintain(self, step: Step, data: st.DataObject) -> None:
        step(self.walk, data.draw)

    @rule()
    def settle(self) -> None:
        self.walk.settle()

    @invariant()
    def rows_are_as_the_oracle_says(self) -> None:
        walk = self.walk
        for root in walk.oracle.roots:
            rows = walk.run(walk.harness.rows(root.id))
            comparison.compare(walk.oracle, list(rows.values()), is_settled=walk.is_settled)

    @invariant()
    def nothing_is_forgotten(self) -> None:
        if self.walk.is_settled:
            assert self.walk.run(self.walk.store.audit(10)) == 0
