"""Concurrent submissions at one name: upstream and downstream, two of one name, a cycle."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.store.behaviour import plans
from tests.store.postgres.stage import Stage
from workron.core import errors
from workron.core.ids import JobId
from workron.core.plan import Plan
from workron.store.types import SubmittedRun


def _waiting_for(upstream: str, name: str = "down") -> Plan:
    return plans.job(name, outside=[plans.outside(upstream)])


async def _submit_at_once(stage: Stage, first: Plan, second: Plan) -> list[JobId]:
    """Submit two at once; the first has not committed when the second begins."""
    # Where the name is new, the primary key alone makes one of them wait.
    await stage.submit(_waiting_for("up", name="early"))
    one, other = await stage.actor(), await stage.actor()
    await one.begin()
    (leading,) = await one.submit([first])
    following = await stage.start(other, other.submit([second]))
    await one.commit()
    (followed,) = await following
    return [leading.run, followed.run]


async def _run_up(stage: Stage) -> None:
    worker = await stage.worker()
    claimed = await worker.claim_one()
    assert claimed.name == "up"
    await worker.end(claimed)


@pytest.mark.parametrize("is_upstream_first", [True, False])
async def test_downstream_meets_its_upstream_when_both_are_submitted_at_once(
    stage: Stage, is_upstream_first: bool
) -> None:
    both = [plans.job("up"), _waiting_for("up")]
    runs = await _submit_at_once(stage, *(both if is_upstream_first else reversed(both)))
    await _run_up(stage)
    down = runs[is_upstream_first]
    assert await stage.states(down) == {"down": "Queued"}


async def test_downstream_misses_its_upstream_when_it_does_not_lock_the_name(stage: Stage) -> None:
    await stage.without("name")
    down, _ = await _submit_at_once(stage, _waiting_for("up"), plans.job("up"))
    await _run_up(stage)
    assert await stage.states(down) == {"down": "Waiting/Upstream"}


async def _submit_one_name_twice(stage: Stage) -> list[JobId]:
    """Start the second when the first has locked the name, and stored nothing yet."""
    await stage.submit(_waiting_for("up", name="early"))
    one, other = await stage.actor(), await stage.actor()
    following: list[asyncio.Task[Sequence[SubmittedRun]]] = []

    async def follow() -> None:
        following.append(await stage.start(other, other.submit([plans.job("up")])))

    one.before_storing = follow
    (leading,) = await one.submit([plans.job("up")])
    (followed,) = await following[0]
    return [leading.run, followed.run]


async def test_second_submission_is_the_first_one_when_both_come_at_once(stage: Stage) -> None:
    first, second = await _submit_one_name_twice(stage)
    assert second == first


async def test_one_name_has_two_runs_when_it_is_not_locked(stage: Stage) -> None:
    await stage.without("name")
    first, second = await _submit_one_name_twice(stage)
    assert second != first


async def _close_one_cycle_from_both_sides(stage: Stage) -> Sequence[object]:
    # a waits for b, b for c, c for d, d for a: the last two share no name.
    await stage.submit(_waiting_for("b", name="a"))
    await stage.submit(_waiting_for("d", name="c"))
    one, other = await stage.actor(), await stage.actor()
    await one.begin()
    await one.submit([_waiting_for("c", name="b")])
    following = await stage.start(other, other.submit([_waiting_for("a", name="d")]))
    await one.commit()
    return await asyncio.gather(following, return_exceptions=True)


async def test_cycle_is_refused_when_two_submissions_close_it_at_once(stage: Stage) -> None:
    (answer,) = await _close_one_cycle_from_both_sides(stage)
    assert isinstance(answer, errors.GraphError)
    assert len(await stage.watcher.list_runs()) == 3


async def test_cycle_is_stored_when_two_that_close_it_do_not_wait_for_each_other(
    stage: Stage,
) -> None:
    await stage.without("cycle")
    await _close_one_cycle_from_both_sides(stage)
    assert len(await stage.watcher.list_runs()) == 4
    assert not await stage.sql.fetch("SELECT * FROM workron.ready")
