"""An agent whose runner is killed: it continues, and only a job that ran alone has a loss."""

import asyncio
import os
import signal
import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.worker.agent_harness import ENDS_IN_ATTEMPT_2, AgentHarness
from tests.worker.output_collector import OutputCollector
from workron.core.states import Reason, State
from workron_runner import event_loop
from workron_worker.executor import CommandTask, RunnerLostError
from workron_worker.runner_client import RunnerExecutor, run_task
from workron_worker.runner_connection import ChildRunner

Make = Callable[..., CommandTask]

_KILL_RUNNER = "kill -9 $PPID; exec sleep 1000"


@pytest.fixture
def runner(harness: AgentHarness) -> RunnerExecutor:
    """The executor of the harness, with a short grace."""
    harness.executor.close()
    harness.executor = executor = RunnerExecutor(grace=timedelta(seconds=0.1), boot=uuid.uuid4())
    return executor


def _signal(executor: RunnerExecutor, number: signal.Signals) -> None:
    assert isinstance(executor._runner, ChildRunner)
    os.kill(executor._runner.pid, number)


async def test_jobs_are_retried_without_a_loss_when_several_were_lost_with_the_runner(
    harness: AgentHarness, runner: RunnerExecutor
) -> None:
    run = await harness.workflow({"name": "many", "count": 2, "command": ENDS_IN_ATTEMPT_2})
    async with harness.working(await harness.agent()):
        await harness.collector.wait_for(b"on", 2)
        _signal(runner, signal.SIGKILL)
        await harness.ended(run)
    rows = [row for row in await harness.store.list_jobs(run) if row.index is not None]
    assert {row.state for row in rows} == {State.SUCCEEDED}
    assert {(row.attempts, row.failures, row.losses) for row in rows} == {(2, 0, 0)}


async def test_job_is_retried_with_a_loss_when_it_was_alone_in_its_runner(
    harness: AgentHarness, runner: RunnerExecutor
) -> None:
    job = await harness.job(command=ENDS_IN_ATTEMPT_2)
    async with harness.working(await harness.agent()):
        await harness.collector.wait()
        _signal(runner, signal.SIGKILL)
        row = await harness.ended(job)
    assert (row.state, row.attempts, row.failures, row.losses) == (State.SUCCEEDED, 2, 0, 1)


@pytest.mark.usefixtures("runner")
async def test_only_the_job_fails_that_kills_its_runner_in_each_attempt(
    harness: AgentHarness,
) -> None:
    killer = await harness.job("killer", command=_KILL_RUNNER, maxWorkerLosses=1)
    others = await harness.workflow({"name": "many", "count": 6, "command": "true"})
    async with harness.working(await harness.agent()):
        row = await harness.ended(killer)
        await harness.ended(others)
    assert (row.state, row.reason, row.losses) == (State.FAILED, Reason.WORKER_LOST, 2)
    rows = await harness.store.list_jobs(others)
    assert {(row.state, row.losses) for row in rows} == {(State.SUCCEEDED, 0)}


async def test_commands_are_lost_when_their_runner_is_terminated(
    executor: RunnerExecutor, make: Make
) -> None:
    collector = OutputCollector()
    runs = [
        asyncio.ensure_future(run_task(executor, make("echo on; exec sleep 9"), collector))
        for _ in range(2)
    ]
    await collector.wait_for(b"on", 2)
    _signal(executor, signal.SIGTERM)
    lost = await asyncio.gather(*runs, return_exceptions=True)
    assert [isinstance(one, RunnerLostError) and one.is_alone for one in lost] == [False, False]


async def test_error_has_is_alone_when_the_runner_ran_one_command(
    executor: RunnerExecutor, make: Make
) -> None:
    collector = OutputCollector()
    run = asyncio.ensure_future(run_task(executor, make("echo on; exec sleep 9"), collector))
    await collector.wait()
    _signal(executor, signal.SIGKILL)
    with pytest.raises(RunnerLostError) as lost:
        await run
    assert lost.value.is_alone


async def test_job_is_released_when_the_runner_killed_it_at_its_deadline(
    harness: AgentHarness, runner: RunnerExecutor
) -> None:
    job = await harness.job(command=ENDS_IN_ATTEMPT_2)
    async with harness.working(await harness.agent()):
        await harness.collector.wait()
        # As if this process had been frozen and the runner had kept the time. The next heartbeat
        # extends the deadline; claims before it are not started, but released as well.
        runner.set_deadline(event_loop.boottime())
        row = await harness.ended(job)
    assert (row.state, row.failures, row.losses) == (State.SUCCEEDED, 0, 0)
    assert row.attempts >= 2
