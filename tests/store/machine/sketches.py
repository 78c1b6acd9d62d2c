"""Small plans drawn at random: a few tasks, arrays, edges of every kind, names that meet."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from tests.store.behaviour import plans
from workron.core.plan import Kind, Outside, Plan
from workron.core.verdict import Condition

# Hypothesis likes the first and the last of anything: what shall be rare stands in the middle.
RARELY = st.sampled_from([False] * 4 + [True] + [False] * 4)
WHENS = st.sampled_from([Condition.SUCCEEDED, Condition.FAILED, Condition.FINISHED])
POOLS = st.sampled_from(["default"] * 4 + ["large"] + ["default"] * 4)
ROOT_NAMES = st.sampled_from(["one", "two", "three", "four", "five", "six"])

OUTSIDE = st.builds(
    lambda kind, name, when: Outside(0, kind, name, when),
    st.sampled_from([Kind.JOB, Kind.WORKFLOW]),
    ROOT_NAMES,
    WHENS,
)
SOME = st.lists(OUTSIDE, min_size=1, max_size=2, unique_by=lambda one: (one.kind, one.name))
NONE: st.SearchStrategy[list[Outside]] = st.just([])
OUTSIDES = RARELY.flatmap(lambda is_any: SOME if is_any else NONE)
# No two sums of these times and of the steps of the clock are ever equal.
TERMS = st.fixed_dictionaries(
    {
        "pool": POOLS,
        "max_losses": st.sampled_from([1, 0, 2]),
        "needs_proof": RARELY,
        "start_after": st.sampled_from([None, None, -10.25, 20.25, None]),
        "deadline_seconds": st.sampled_from([None, None, 60.75, None]),
    },
)
ABOUT = st.fixed_dictionaries(
    {
        "priority": st.integers(0, 2),
        "digest": st.sampled_from(["first", "other"]),
        "is_suspended": RARELY,
    }
)


def _dated(terms: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    seconds = terms["start_after"]
    return {**terms, "start_after": seconds and now + timedelta(seconds=seconds)}


@st.composite
def jobs(draw: st.DrawFn, now: datetime) -> Plan:
    """Draw a root that is one command."""
    about = draw(ABOUT) | _dated(draw(TERMS), now)
    return plans.job(draw(ROOT_NAMES), outside=draw(OUTSIDES), **about)


@st.composite
def workflows(draw: st.DrawFn, now: datetime) -> Plan:
    """Draw a workflow of up to four tasks."""
    tasks: dict[str, plans.Task] = {}
    for name in "abcd"[: draw(st.integers(1, 4))]:
        tasks[name] = draw(_tasks(tasks, now))
    return plans.dag(draw(ROOT_NAMES), draw(ABOUT), **tasks)


@st.composite
def _tasks(draw: st.DrawFn, earlier: Mapping[str, plans.Task], now: datetime) -> plans.Task:
    needs = draw(st.dictionaries(st.sampled_from(sorted(earlier)), WHENS)) if earlier else {}
    terms = _dated(draw(TERMS), now)
    outside = draw(OUTSIDES)
    if draw(st.booleans()):
        return plans.task(when=needs, outside=outside, **terms)
    # What the deadline of an array means for its elements is the business of `core.expand`.
    terms.pop("deadline_seconds", None)
    counts = {earlier[name].count for name in needs}
    is_each = len(counts) == 1 and None not in counts and draw(st.booleans())
    count = counts.pop() if is_each else draw(st.integers(1, 3))
    return plans.task(count=count, each=is_each, when=needs, outside=outside, **terms)


def any_plan(now: datetime) -> st.SearchStrategy[Plan]:
    """Draw either."""
    return st.one_of(jobs(now), workflows(now))
