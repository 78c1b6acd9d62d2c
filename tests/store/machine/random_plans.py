"""Small random plans: a few tasks, arrays, edges of every kind, and shared names."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.store.behaviour import plans
from workron.core.plan import ExternalDependency, Kind, Plan
from workron.core.verdict import Condition

RUN_NAMES = ("one", "two", "three", "four", "five", "six")
WHENS = (Condition.SUCCEEDED, Condition.FAILED, Condition.FINISHED)


def is_chosen(chance: Random, share: float) -> bool:
    """Return True with this probability."""
    return chance.random() < share


def any_plan(chance: Random, now: datetime) -> Plan:
    """Draw a job or a workflow of up to four tasks."""
    name = chance.choice(RUN_NAMES)
    about = {
        "priority": chance.randrange(3),
        "digest": chance.choice(["first", "other"]),
        "is_suspended": is_chosen(chance, 0.1),
    }
    if is_chosen(chance, 0.3):
        return plans.job(name, outside=_outside(chance), **about, **_terms(chance, now))
    tasks: dict[str, plans.Task] = {}
    for task in "abcd"[: chance.randint(1, 4)]:
        tasks[task] = _task(chance, tasks, now)
    last: dict[str, plans.Task] = {}
    for task in "yz"[: chance.choice([0, 0, 1, 2])]:
        last[task] = _task(chance, last, now)
    about |= {"last": last, "deadline_seconds": 45.5 if is_chosen(chance, 0.2) else None}
    return plans.dag(name, about, **tasks)


def _task(chance: Random, earlier: Mapping[str, plans.Task], now: datetime) -> plans.Task:
    needs = {name: chance.choice(WHENS) for name in earlier if is_chosen(chance, 0.4)}
    terms = _terms(chance, now)
    about = {"outside": _outside(chance), "allow_failure": is_chosen(chance, 0.3), **terms}
    if is_chosen(chance, 0.5):
        return plans.task(when=needs, **about)
    # `core.planner` decides what the deadline of an array means for its elements.
    about |= {"deadline_seconds": None, "max_failures": chance.choice([None, 0, 1, 2])}
    counts = {earlier[name].count for name in needs}
    count = counts.pop() if len(counts) == 1 else None
    is_each = count is not None and is_chosen(chance, 0.5)
    count = count if is_each else chance.randint(1, 4)
    return plans.task(count=count, each=is_each, when=needs, **about)


def _terms(chance: Random, now: datetime) -> dict[str, Any]:
    # No two sums of these times and of the steps of the clock are ever equal.
    start = now + timedelta(seconds=chance.choice([-10.25, 20.25]))
    return {
        "pool": chance.choices(["default", "large"], [9, 1])[0],
        "max_losses": chance.randrange(3),
        "needs_proof": is_chosen(chance, 0.2),
        "start_after": start if is_chosen(chance, 0.2) else None,
        "deadline_seconds": 60.75 if is_chosen(chance, 0.3) else None,
    }


def _outside(chance: Random) -> list[ExternalDependency]:
    if not is_chosen(chance, 0.15):
        return []
    kinds = (Kind.JOB, Kind.WORKFLOW)
    wanted = {(chance.choice(kinds), chance.choice(RUN_NAMES)) for _ in range(2)}
    return [
        ExternalDependency(0, kind, name, chance.choice(WHENS)) for kind, name in sorted(wanted)
    ]
