"""When an agent drains by itself."""

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta

import pytest
import structlog
from structlog import testing

from tests.worker.shop import QUICK, Shop
from workron.core.states import State
from workron_worker.agent import DrainPolicy
from workron_worker.config import AgentConfig

_TEN = timedelta(seconds=10)


class HandClock:
    """Stands still until it is turned."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


async def test_agent_that_was_idle_for_so_long_does_not_wait_for_its_next_poll(shop: Shop) -> None:
    config = dataclasses.replace(
        QUICK, poll=timedelta(days=1), idle_exit=timedelta(milliseconds=200)
    )
    agent = await shop.agent(config=config)
    async with asyncio.timeout(20):
        await agent.run()


def test_time_that_is_left_to_be_idle_is_known() -> None:
    clock = HandClock()
    shift = DrainPolicy(clock, AgentConfig(idle_exit=_TEN))
    shift.reached_limit(requested=1, granted=0, running=0)
    clock.seconds = 4
    assert shift.seconds_until_idle_exit == 6
    clock.seconds = 11
    assert shift.seconds_until_idle_exit == 0


async def test_agent_that_drains_by_itself_says_which_limit_it_has_met(shop: Shop) -> None:
    # A command that an earlier test carried out in this process may have silenced such lines.
    structlog.reset_defaults()
    with testing.capture_logs() as lines:
        config = dataclasses.replace(QUICK, idle_exit=timedelta(milliseconds=1))
        await (await shop.agent(config=config)).run()
    [line] = [one for one in lines if one["event"].startswith("limit reached")]
    assert line["limit"] == "idle_exit"


def test_shift_without_a_limit_is_never_over() -> None:
    clock = HandClock()
    shift = DrainPolicy(clock, AgentConfig())
    for _ in range(3):
        clock.seconds += 1e6
        assert shift.limit(1000) == 1000
        assert not shift.reached_limit(requested=1000, granted=0, running=0)


def test_no_more_is_asked_for_than_is_left_of_the_jobs() -> None:
    shift = DrainPolicy(HandClock(), AgentConfig(max_jobs=5))
    assert shift.limit(4) == 4
    assert not shift.reached_limit(requested=4, granted=3, running=0)
    assert shift.limit(4) == 2
    assert shift.reached_limit(requested=2, granted=2, running=3) == "max_jobs"


def test_shift_is_over_when_nothing_was_found_for_so_long() -> None:
    clock = HandClock()
    shift = DrainPolicy(clock, AgentConfig(idle_exit=_TEN))
    assert not shift.reached_limit(requested=1, granted=0, running=0)
    clock.seconds = 9.9
    assert not shift.reached_limit(requested=1, granted=0, running=0)
    clock.seconds = 10
    assert shift.reached_limit(requested=1, granted=0, running=0) == "idle_exit"


def test_idle_time_begins_anew_with_whatever_runs() -> None:
    clock = HandClock()
    shift = DrainPolicy(clock, AgentConfig(idle_exit=_TEN))
    shift.reached_limit(requested=1, granted=0, running=0)
    clock.seconds = 9
    shift.reached_limit(requested=1, granted=0, running=1)
    clock.seconds = 15
    assert not shift.reached_limit(requested=1, granted=0, running=0)
    clock.seconds = 25
    assert shift.reached_limit(requested=1, granted=0, running=0)


def test_who_asked_for_nothing_has_not_found_nothing() -> None:
    clock = HandClock()
    shift = DrainPolicy(clock, AgentConfig(idle_exit=_TEN))
    shift.reached_limit(requested=0, granted=0, running=0)
    clock.seconds = 20
    assert not shift.reached_limit(requested=1, granted=0, running=0)
    assert not shift.reached_limit(requested=0, granted=0, running=0)


async def test_agent_runs_so_many_jobs_and_leaves_the_rest(shop: Shop) -> None:
    root = await shop.workflow({"name": "many", "count": 10, "command": "true"})
    agent = await shop.agent(config=dataclasses.replace(QUICK, max_jobs=6))
    async with asyncio.timeout(20):
        await agent.run()
    states = [state for name, state in (await shop.states(root)).items() if "/" in name]
    assert (states.count(State.SUCCEEDED), states.count(State.QUEUED)) == (6, 4)
    assert len(shop.heard_of) == 6


async def test_agent_that_found_nothing_for_long_ends(shop: Shop) -> None:
    agent = await shop.agent(config=dataclasses.replace(QUICK, idle_exit=timedelta(hours=1)))
    task = asyncio.create_task(agent.run())
    await shop.ended(await shop.job(command="true"))
    while not task.done():
        shop.clock.turned += timedelta(minutes=50).total_seconds()
        await asyncio.wait([task], timeout=QUICK.poll.total_seconds())
    await task


@pytest.mark.parametrize("config", [AgentConfig(), AgentConfig(idle_exit=_TEN)])
def test_idle_time_is_unknown_before_the_first_exchange(config: AgentConfig) -> None:
    assert DrainPolicy(HandClock(), config).seconds_until_idle_exit is None
