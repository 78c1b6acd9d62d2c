"""The agent and faults: lost answers, an unavailable store, a lost session, failed starts."""

import asyncio
import dataclasses
import os
import pathlib
import uuid
from datetime import timedelta
from typing import Any, cast

import pytest

from tests.worker.agent_harness import QUICK_CONFIG, AgentHarness
from tests.worker.unreliable_store import UnreliableStore
from workron.core import errors
from workron.core.plan import Identity, Kind, Plan, PlannedJob, SchedulingTerms, plain_specs
from workron.core.states import Reason, State
from workron_worker.config import AgentConfig, Slots
from workron_worker.executor import CommandTask, OnEnd, OnOutput, StartError
from workron_worker.runner_client import RunnerExecutor

_ENDS_IN_ATTEMPT_2 = """
if [ "$WORKRON_ATTEMPT" = 2 ]; then echo second; exit 0; fi
trap 'echo bye; exit 0' TERM
echo first
sleep 1000 & wait
"""

_FOREVER = timedelta(days=1)


class FailingExecutor:
    """An executor whose first starts fail."""

    def __init__(self, executor: RunnerExecutor, times: int) -> None:
        self._executor = executor
        self._times = times

    def start(self, task: CommandTask, on_end: OnEnd, on_output: OnOutput | None = None) -> None:
        if self._times:
            self._times -= 1
            asyncio.get_running_loop().call_soon(on_end, StartError("out of processes"))
        else:
            self._executor.start(task, on_end, on_output)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


@pytest.mark.parametrize("verb", ["register", "heartbeat", "claim", "complete"])
async def test_job_runs_once_when_an_answer_is_lost(
    harness: AgentHarness, tmp_path: pathlib.Path, verb: str
) -> None:
    store = UnreliableStore(harness.store)
    store.lost_answers = {verb}
    run = await harness.workflow(
        {"name": "many", "count": 3, "command": f"echo $WORKRON_INDEX >> {tmp_path}/indexes"}
    )
    async with harness.working(await harness.agent(store=store)):
        await harness.ended(run)
    assert sorted((tmp_path / "indexes").read_text().split()) == ["0", "1", "2"]
    assert {row.attempts for row in await harness.store.list_jobs(run) if row.kind is Kind.JOB} == {
        1
    }


async def test_agent_kills_and_releases_before_its_lease_expires_when_the_store_is_unavailable(
    harness: AgentHarness,
) -> None:
    store = UnreliableStore(harness.store)
    job = await harness.job(command=_ENDS_IN_ATTEMPT_2)
    async with harness.working(await harness.agent(store=store)):
        await harness.collector.wait()
        store.is_unavailable = True
        harness.clock.offset_seconds += 6
        await harness.collector.wait()
        assert harness.collector.received == b"first\nbye\n"
        store.is_unavailable = False
        row = await harness.ended(job)
    assert (row.state, row.attempts, row.failures, row.losses) == (State.SUCCEEDED, 2, 0, 0)


async def test_agent_kills_when_it_was_frozen_past_its_deadline(
    harness: AgentHarness,
) -> None:
    job = await harness.job(command=_ENDS_IN_ATTEMPT_2)
    async with harness.working(await harness.agent()):
        await harness.collector.wait()
        harness.clock.offset_seconds += 6
        row = await harness.ended(job)
    assert harness.collector.received == b"first\nbye\nsecond\n"
    assert (row.state, row.attempts, row.losses) == (State.SUCCEEDED, 2, 0)


async def test_command_continues_after_its_lease_when_it_may_outlive_it(
    harness: AgentHarness, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    command = f"trap 'echo bye' TERM; echo on; cat {tmp_path}/go"
    store = UnreliableStore(harness.store)
    agent = await harness.agent(store=store)
    outliving = await harness.job("outliving", command=command, onLeaseLost="continue")
    async with harness.working(agent):
        await harness.collector.wait()
        other = await harness.job("other", command=_ENDS_IN_ATTEMPT_2)
        await harness.collector.wait()
        store.is_unavailable = True
        harness.clock.offset_seconds += 6
        await harness.collector.wait()
        store.is_unavailable = False
        await harness.ended(other)
        await asyncio.to_thread((tmp_path / "go").write_text, "continued\n")
        row = await harness.ended(outliving)
    assert (row.state, row.attempts) == (State.SUCCEEDED, 1)
    assert await harness.store.read_output(outliving) == b"on\ncontinued\n"


async def test_agent_kills_and_registers_again_when_its_session_is_lost(
    harness: AgentHarness,
) -> None:
    # Without a free slot it claims nothing: only its heartbeat can notice the loss.
    harness.slots = Slots(1)
    job = await harness.job(command=_ENDS_IN_ATTEMPT_2)
    async with harness.working(await harness.agent()):
        await harness.collector.wait()
        [worker] = await harness.store.list_heartbeats()
        assert (await harness.store.reap(worker.worker, version=None)).was_reaped
        row = await harness.ended(job)
    assert harness.collector.received == b"first\nbye\nsecond\n"
    assert (row.state, row.attempts, row.losses) == (State.SUCCEEDED, 2, 1)
    assert await harness.store.read_output(job) == b"second\n"


async def test_command_is_killed_and_not_reported_when_the_store_no_longer_lists_its_claim(
    harness: AgentHarness,
) -> None:
    store = UnreliableStore(harness.store)
    job = await harness.job(command=_ENDS_IN_ATTEMPT_2)
    async with harness.working(await harness.agent(store=store)):
        await harness.collector.wait()
        store.omits_claims = True
        row = await harness.ended(job)
    assert harness.collector.received == b"first\nbye\nsecond\n"
    assert (row.state, row.attempts, row.failures) == (State.SUCCEEDED, 2, 0)


async def test_failed_start_is_retried_and_not_counted(harness: AgentHarness) -> None:
    harness.executor = cast("RunnerExecutor", FailingExecutor(harness.executor, times=2))
    job = await harness.job(command="true")
    async with harness.working(await harness.agent()):
        row = await harness.ended(job)
    assert (row.state, row.failures, row.losses) == (State.SUCCEEDED, 0, 0)


async def test_start_failures_of_one_moment_count_once(harness: AgentHarness) -> None:
    harness.executor = cast("RunnerExecutor", FailingExecutor(harness.executor, times=4 * 4))
    jobs = [await harness.job(f"job-{number}", command="true") for number in range(4)]
    async with harness.working(await harness.agent()):
        for job in jobs:
            assert (await harness.ended(job)).state is State.SUCCEEDED


async def test_agent_fails_when_no_command_can_be_started(harness: AgentHarness) -> None:
    harness.executor = cast("RunnerExecutor", FailingExecutor(harness.executor, times=100))
    await harness.workflow({"name": "many", "count": 4, "command": "true"})
    with pytest.raises(StartError, match="out of processes"):
        await (await harness.agent()).run()
    # It has deregistered: no lease has to expire before other workers run its jobs.
    assert await harness.store.list_heartbeats() == []


async def test_agent_fails_when_the_store_is_unavailable_for_too_long(
    harness: AgentHarness,
) -> None:
    store = UnreliableStore(harness.store)
    store.is_unavailable = True
    config = AgentConfig(store_timeout=timedelta(0))
    with pytest.raises(errors.StoreUnreachableError, match="unavailable"):
        await (await harness.agent(store=store, config=config)).run()


async def test_killed_agent_does_not_wait_when_the_store_is_unavailable(
    harness: AgentHarness,
) -> None:
    store = UnreliableStore(harness.store)
    await harness.job(command="echo on; exec sleep 1000")
    agent = await harness.agent(
        store=store, config=dataclasses.replace(QUICK_CONFIG, store_timeout=_FOREVER)
    )
    work = asyncio.create_task(agent.run())
    await harness.collector.wait()
    store.is_unavailable = True
    agent.kill()
    with pytest.raises(errors.StoreUnreachableError):
        await work


async def test_agent_fails_at_once_when_the_store_is_full(harness: AgentHarness) -> None:
    store = UnreliableStore(harness.store)
    job = await harness.job(command="echo on; exec sleep 1000")
    agent = await harness.agent(store=store)
    work = asyncio.create_task(agent.run())
    await harness.collector.wait()
    store.is_unavailable, store.error = True, errors.StoreFullError("no space is left")
    await harness.store.cancel(job)
    agent.kill()
    with pytest.raises(errors.StoreFullError):
        await work


async def test_job_fails_with_a_message_when_its_spec_cannot_be_read(harness: AgentHarness) -> None:
    plan = Plan(
        identity=Identity("default", Kind.JOB, "odd", uuid.uuid4()),
        digest=lambda: "odd",
        nodes=[PlannedJob(Kind.JOB, "odd", 0)],
        terms=[SchedulingTerms()],
        specs=plain_specs([{"command": 5}]),
    )
    [submitted] = await harness.store.submit([plan])
    async with harness.working(await harness.agent(config=QUICK_CONFIG)):
        row = await harness.ended(submitted.run)
    assert (row.state, row.reason) == (State.FAILED, Reason.COMMAND_NOT_FOUND)
    assert "this worker cannot read the job's spec" in (row.message or "")


async def test_job_runs_when_its_spec_has_fields_of_a_newer_version(harness: AgentHarness) -> None:
    plan = Plan(
        identity=Identity("default", Kind.JOB, "new", uuid.uuid4()),
        digest=lambda: "new",
        nodes=[PlannedJob(Kind.JOB, "new", 0)],
        terms=[SchedulingTerms()],
        specs=plain_specs([{"command": "true", "inventedLater": {"a": 1}}]),
    )
    [submitted] = await harness.store.submit([plan])
    async with harness.working(await harness.agent()):
        assert (await harness.ended(submitted.run)).state is State.SUCCEEDED
