"""The limits at which an agent drains: a number of jobs, or idle time."""

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta

import pytest
import structlog
from structlog import testing

from tests.worker.agent_harness import QUICK_CONFIG, AgentHarness
from workron.core.states import State
from workron_worker.agent import DrainPolicy
from workron_worker.config import AgentConfig

_TEN = timedelta(seconds=10)


class ManualClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


async def test_agent_does_not_wait_for_its_next_poll_when_its_idle_limit_is_reached(
    harness: AgentHarness,
) -> None:
    config = dataclasses.replace(
        QUICK_CONFIG, poll=timedelta(days=1), idle_exit=timedelta(milliseconds=200)
    )
    await (await harness.agent(config=config)).run()


def test_idle_time_that_is_left_is_known() -> None:
    clock = ManualClock()
    policy = DrainPolicy(clock, AgentConfig(idle_exit=_TEN))
    policy.reached_limit(requested=1, granted=0, running=0)
    clock.seconds = 4
    assert policy.seconds_until_idle_exit == 6
    clock.seconds = 11
    assert policy.seconds_until_idle_exit == 0


async def test_agent_logs_the_limit_when_it_is_reached(harness: AgentHarness) -> None:
    # A command that an earlier test ran in this process may have changed the log level.
    structlog.reset_defaults()
    with testing.capture_logs() as events:
        config = dataclasses.replace(QUICK_CONFIG, idle_exit=timedelta(milliseconds=1))
        await (await harness.agent(config=config)).run()
    [event] = [one for one in events if one["event"].startswith("limit reached")]
    assert event["limit"] == "idle_exit"


def test_no_limit_is_reached_when_none_is_set() -> None:
    clock = ManualClock()
    policy = DrainPolicy(clock, AgentConfig())
    for _ in range(3):
        clock.seconds += 1e6
        assert policy.limit(1000) == 1000
        assert not policy.reached_limit(requested=1000, granted=0, running=0)


def test_requests_are_limited_by_the_jobs_that_are_left() -> None:
    policy = DrainPolicy(ManualClock(), AgentConfig(max_jobs=5))
    assert policy.limit(4) == 4
    assert not policy.reached_limit(requested=4, granted=3, running=0)
    assert policy.limit(4) == 2
    assert policy.reached_limit(requested=2, granted=2, running=3) == "max_jobs"


def test_idle_limit_is_reached_when_nothing_was_granted_for_that_long() -> None:
    clock = ManualClock()
    policy = DrainPolicy(clock, AgentConfig(idle_exit=_TEN))
    assert not policy.reached_limit(requested=1, granted=0, running=0)
    clock.seconds = 9.9
    assert not policy.reached_limit(requested=1, granted=0, running=0)
    clock.seconds = 10
    assert policy.reached_limit(requested=1, granted=0, running=0) == "idle_exit"


def test_idle_time_starts_again_when_a_job_ran() -> None:
    clock = ManualClock()
    policy = DrainPolicy(clock, AgentConfig(idle_exit=_TEN))
    policy.reached_limit(requested=1, granted=0, running=0)
    clock.seconds = 9
    policy.reached_limit(requested=1, granted=0, running=1)
    clock.seconds = 15
    assert not policy.reached_limit(requested=1, granted=0, running=0)
    clock.seconds = 25
    assert policy.reached_limit(requested=1, granted=0, running=0)


def test_idle_time_does_not_start_when_nothing_was_requested() -> None:
    clock = ManualClock()
    policy = DrainPolicy(clock, AgentConfig(idle_exit=_TEN))
    policy.reached_limit(requested=0, granted=0, running=0)
    clock.seconds = 20
    assert not policy.reached_limit(requested=1, granted=0, running=0)
    assert not policy.reached_limit(requested=0, granted=0, running=0)


async def test_agent_ends_when_it_has_run_its_maximum_of_jobs(harness: AgentHarness) -> None:
    run = await harness.workflow({"name": "many", "count": 10, "command": "true"})
    agent = await harness.agent(config=dataclasses.replace(QUICK_CONFIG, max_jobs=6))
    await agent.run()
    states = [state for name, state in (await harness.states(run)).items() if "/" in name]
    assert (states.count(State.SUCCEEDED), states.count(State.QUEUED)) == (6, 4)
    assert len(harness.started_jobs) == 6


async def test_agent_ends_when_it_was_idle_for_too_long(harness: AgentHarness) -> None:
    agent = await harness.agent(
        config=dataclasses.replace(QUICK_CONFIG, idle_exit=timedelta(hours=1))
    )
    task = asyncio.create_task(agent.run())
    await harness.ended(await harness.job(command="true"))
    while agent._drain_policy.seconds_until_idle_exit is None:
        await asyncio.sleep(0)
    harness.clock.offset_seconds += timedelta(hours=1).total_seconds()
    await task


@pytest.mark.parametrize("config", [AgentConfig(), AgentConfig(idle_exit=_TEN)])
def test_idle_time_is_unknown_before_the_first_exchange(config: AgentConfig) -> None:
    assert DrainPolicy(ManualClock(), config).seconds_until_idle_exit is None
