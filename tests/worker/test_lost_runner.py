"""An agent whose runner is killed: it goes on, and no job is charged for another one's deed."""

import asyncio
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from tests.worker.ear import Ear
from tests.worker.shop import Shop
from workron.core.states import Reason, State
from workron_runner import event_loop
from workron_worker.executor import CommandTask, RunnerLostError
from workron_worker.runner_client import RunnerExecutor, run_task
from workron_worker.runner_connection import ChildRunner

Make = Callable[..., CommandTask]

_STAY_ONCE = 'if [ "$WORKRON_ATTEMPT" = 1 ]; then echo on; exec sleep 1000; fi'
_MURDER = "kill -9 $PPID; exec sleep 1000"


@pytest.fixture
def runner(shop: Shop) -> RunnerExecutor:
    """The shop's executor, over a runner."""
    shop.executor.close()
    shop.executor = executor = RunnerExecutor(grace=timedelta(seconds=0.1), boot=uuid.uuid4())
    return executor


@pytest.fixture
def lone(boot: uuid.UUID) -> Iterator[RunnerExecutor]:
    executor = RunnerExecutor(grace=timedelta(seconds=0.1), boot=boot)
    yield executor
    executor.close()


def _end(executor: RunnerExecutor, number: signal.Signals) -> None:
    assert isinstance(executor._runner, ChildRunner)
    os.kill(executor._runner.pid, number)


async def test_jobs_that_fell_with_the_runner_are_run_again_and_charged_nothing(
    shop: Shop, runner: RunnerExecutor
) -> None:
    root = await shop.workflow({"name": "many", "count": 2, "command": _STAY_ONCE})
    async with shop.working(await shop.agent()):
        while shop.ear.heard.count(b"on") < 2:
            await shop.ear.wait()
        _end(runner, signal.SIGKILL)
        await shop.ended(root)
    rows = [row for row in await shop.store.list_jobs(root) if row.index is not None]
    assert {row.state for row in rows} == {State.SUCCEEDED}
    assert {(row.attempts, row.failures, row.losses) for row in rows} == {(2, 0, 0)}


async def test_job_that_was_alone_when_its_runner_fell_is_charged_a_loss_and_run_again(
    shop: Shop, runner: RunnerExecutor
) -> None:
    job = await shop.job(command=_STAY_ONCE)
    async with shop.working(await shop.agent()):
        await shop.ear.wait()
        _end(runner, signal.SIGKILL)
        row = await shop.ended(job)
    assert (row.state, row.attempts, row.failures, row.losses) == (State.SUCCEEDED, 2, 0, 1)


@pytest.mark.usefixtures("runner")
async def test_job_that_kills_its_runner_each_time_comes_to_an_end_and_takes_nobody_with_it(
    shop: Shop,
) -> None:
    poison = await shop.job("poison", command=_MURDER, maxWorkerLosses=1)
    harmless = await shop.workflow({"name": "many", "count": 6, "command": "true"})
    async with shop.working(await shop.agent()):
        row = await shop.ended(poison)
        await shop.ended(harmless)
    assert (row.state, row.reason, row.losses) == (State.FAILED, Reason.WORKER_LOST, 2)
    rows = await shop.store.list_jobs(harmless)
    assert {(row.state, row.losses) for row in rows} == {(State.SUCCEEDED, 0)}


async def test_runner_that_was_told_to_end_has_lost_what_it_ran(
    lone: RunnerExecutor, make: Make
) -> None:
    ear = Ear()
    runs = [
        asyncio.ensure_future(run_task(lone, make("echo on; exec sleep 9"), ear)) for _ in range(2)
    ]
    while ear.heard.count(b"on") < 2:
        await ear.wait()
    _end(lone, signal.SIGTERM)
    lost = await asyncio.gather(*runs, return_exceptions=True)
    assert [isinstance(one, RunnerLostError) and one.is_alone for one in lost] == [False, False]


async def test_command_that_was_alone_in_its_lost_runner_is_told_so(
    lone: RunnerExecutor, make: Make
) -> None:
    ear = Ear()
    run = asyncio.ensure_future(run_task(lone, make("echo on; exec sleep 9"), ear))
    await ear.wait()
    _end(lone, signal.SIGKILL)
    with pytest.raises(RunnerLostError) as lost:
        await run
    assert lost.value.is_alone


async def test_command_that_the_runner_ended_in_time_is_handed_back(
    shop: Shop, runner: RunnerExecutor
) -> None:
    job = await shop.job(command=_STAY_ONCE)
    async with shop.working(await shop.agent()):
        await shop.ear.wait()
        # As if this process had stood still, and the runner alone had kept the time. The next beat
        # lets live again; what is claimed before it is not started, and handed back too.
        runner.set_deadline(event_loop.boottime())
        row = await shop.ended(job)
    assert (row.state, row.failures, row.losses) == (State.SUCCEEDED, 0, 0)
    assert row.attempts >= 2
