"""The agent without faults: real commands and a store in memory."""

import asyncio
import json
import os
import pathlib
from datetime import timedelta
from typing import Any

import pytest

from tests.worker.agent_harness import QUICK_CONFIG, AgentHarness
from workron.core.states import Reason, State
from workron_worker.config import AgentConfig, Slots


async def test_agent_runs_all_jobs_of_a_workflow(harness: AgentHarness) -> None:
    run = await harness.workflow(
        {"name": "end", "command": "true", "dependsOn": [{"name": "many"}]},
        {"name": "many", "command": "true", "count": 10, "dependsOn": [{"name": "begin"}]},
        {"name": "begin", "command": "true"},
    )
    async with harness.working(await harness.agent()):
        assert (await harness.ended(run)).state is State.SUCCEEDED
    assert set((await harness.states(run)).values()) == {State.SUCCEEDED}


async def test_results_are_inputs_of_downstream_jobs(harness: AgentHarness) -> None:
    run = await harness.workflow(
        {"name": "one", "command": 'echo 7 > "$WORKRON_RESULT"'},
        {"name": "all", "items": [1, 2], "command": "echo [$WORKRON_ITEM] > $WORKRON_RESULT"},
        {
            "name": "end",
            "command": "cat $WORKRON_INPUTS",
            "dependsOn": [{"name": "one"}, {"name": "all"}],
        },
    )
    async with harness.working(await harness.agent()):
        await harness.ended(run)
    assert json.loads(await harness.output(run, "end")) == {"one": 7, "all": [[1], [2]]}


async def test_command_has_variables_of_its_attempt(harness: AgentHarness) -> None:
    task = {"name": "many", "count": 1, "command": "env", "maxAttempts": 4}
    run = await harness.workflow(task)
    async with harness.working(await harness.agent()):
        await harness.ended(run)
    [claimed] = harness.started_jobs
    lines = (await harness.store.read_output(claimed.job)).decode().splitlines()
    assert {
        "WORKRON_NAMESPACE=default",
        f"WORKRON_RUN={claimed.run}",
        "WORKRON_TASK=many",
        "WORKRON_POOL=default",
        f"WORKRON_JOB_ID={claimed.job}",
        "WORKRON_ATTEMPT=1",
        "WORKRON_MAX_ATTEMPTS=4",
        f"WORKRON_FENCE={claimed.fence}",
        "WORKRON_INDEX=0",
        f"WORKRON_BOOT={harness.boot}",
    } <= set(lines)


@pytest.mark.parametrize(
    ("item", "formatted"), [("a b", "a b"), (True, "true"), (1.5, "1.5"), (-3, "-3"), ("", "")]
)
async def test_item_is_formatted_as_in_a_manifest(
    harness: AgentHarness, item: object, formatted: str
) -> None:
    run = await harness.workflow(
        {"name": "many", "items": [item], "command": 'printf %s "$WORKRON_ITEM"'}
    )
    async with harness.working(await harness.agent()):
        await harness.ended(run)
    assert await harness.store.read_output(harness.started_jobs[0].job) == formatted.encode()


async def test_failed_command_is_retried_up_to_its_maximum_of_attempts(
    harness: AgentHarness,
) -> None:
    job = await harness.job(command="exit 3", maxAttempts=2, backoff={"initial": "1ms"})
    async with harness.working(await harness.agent()):
        row = await harness.ended(job)
    assert (row.state, row.reason, row.exit_code) == (State.FAILED, Reason.EXIT_CODE, 3)
    assert (row.attempts, row.failures, row.losses) == (2, 2, 0)


async def test_failed_command_may_succeed_in_its_next_attempt(harness: AgentHarness) -> None:
    job = await harness.job(command='test "$WORKRON_ATTEMPT" = 2', backoff={"initial": "1ms"})
    async with harness.working(await harness.agent()):
        row = await harness.ended(job)
    assert (row.state, row.attempts, row.failures) == (State.SUCCEEDED, 2, 1)


async def test_timeout_of_an_attempt_is_reported(harness: AgentHarness) -> None:
    job = await harness.job(command="exec sleep 1000", timeout="100ms", maxAttempts=1)
    async with harness.working(await harness.agent()):
        row = await harness.ended(job)
    assert (row.state, row.reason) == (State.FAILED, Reason.TIMEOUT)


async def test_running_command_is_cancelled_at_the_next_heartbeat(harness: AgentHarness) -> None:
    job = await harness.job(command="echo on; exec sleep 1000")
    async with harness.working(await harness.agent()):
        await harness.collector.wait()
        assert await harness.store.cancel(job)
        assert (await harness.ended(job)).state is State.CANCELLED


async def test_running_command_is_killed_when_the_deadline_of_its_job_has_passed(
    harness: AgentHarness,
) -> None:
    job = await harness.job(command="echo on; exec sleep 1000", deadline="1h")
    async with harness.working(await harness.agent()):
        await harness.collector.wait()
        harness.clock.offset_seconds += timedelta(hours=2).total_seconds()
        row = await harness.ended(job)
    assert (row.state, row.reason) == (State.FAILED, Reason.DEADLINE_EXCEEDED)


async def test_draining_agent_finishes_what_runs_and_claims_no_more(
    harness: AgentHarness, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    first = await harness.job("first", command=f"echo on; cat {tmp_path}/go")
    agent = await harness.agent()
    async with harness.working(agent) as work:
        await harness.collector.wait()
        agent.drain()
        second = await harness.job("second", command="true")
        await asyncio.to_thread((tmp_path / "go").write_text, "go")
        await work
    assert (await harness.states(first))["first"] is State.SUCCEEDED
    assert (await harness.states(second))["second"] is State.QUEUED


async def _heartbeats(harness: AgentHarness) -> int:
    [worker] = await harness.store.list_heartbeats()
    return worker.version.heartbeats


async def test_draining_agent_sends_heartbeats(
    harness: AgentHarness, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    await harness.job(command=f"echo on; cat {tmp_path}/go")
    agent = await harness.agent()
    async with harness.working(agent) as work:
        await harness.collector.wait()
        agent.drain()
        before = await _heartbeats(harness)
        while await _heartbeats(harness) < before + 3:
            assert not work.done()
        await asyncio.to_thread((tmp_path / "go").write_text, "go")
        await work


async def test_agent_drains_when_the_store_requests_it(harness: AgentHarness) -> None:
    agent = await harness.agent()
    async with harness.working(agent) as work:
        await harness.ended(await harness.job(command="true"))
        [worker] = await harness.store.list_heartbeats()
        await harness.store.drain(worker.worker)
        await work
    assert list(await harness.store.list_heartbeats()) == []


async def test_killed_agent_releases_running_jobs_and_nothing_is_counted(
    harness: AgentHarness,
) -> None:
    job = await harness.job(command="echo on; exec sleep 1000")
    agent = await harness.agent()
    async with harness.working(agent) as work:
        await harness.collector.wait()
        agent.kill()
        await work
    [row] = await harness.store.list_jobs(job)
    assert (row.state, row.failures, row.losses) == (State.QUEUED, 0, 0)


async def test_agent_starts_nothing_when_it_is_killed_during_a_claim(harness: AgentHarness) -> None:
    job = await harness.job(command="true")

    class KillingStore:
        def __getattr__(self, name: str) -> Any:
            return getattr(harness.store, name)

        async def claim(self, *arguments: Any) -> Any:
            granted = await harness.store.claim(*arguments)
            agent.kill()
            return granted

    agent = await harness.agent(store=KillingStore())
    async with harness.working(agent) as work:
        await work
    [row] = await harness.store.list_jobs(job)
    assert (row.state, row.failures, harness.started_jobs) == (State.QUEUED, 0, [])


async def test_agent_deregisters_when_it_ends(harness: AgentHarness) -> None:
    async with harness.working(await harness.agent()):
        await harness.ended(await harness.job(command="true"))
    assert list(await harness.store.list_heartbeats()) == []


async def test_agents_of_two_pools_share_the_slots(
    harness: AgentHarness, tmp_path: pathlib.Path
) -> None:
    harness.slots = Slots(1)
    exclusive = f"mkdir {tmp_path}/lock && sleep 0.05 && rmdir {tmp_path}/lock"
    runs = [
        await harness.job(f"{pool}-{number}", pool=pool, command=exclusive, maxAttempts=1)
        for number in range(5)
        for pool in ("a", "b")
    ]
    one, other = await harness.agent(pool="a"), await harness.agent(pool="b")
    async with harness.working(one), harness.working(other):
        for run in runs:
            assert (await harness.ended(run)).state is State.SUCCEEDED


async def test_output_of_a_failed_attempt_is_kept(harness: AgentHarness) -> None:
    job = await harness.job(command="echo why; exit 1", maxAttempts=1, outputLimitBytes=100)
    async with harness.working(await harness.agent()):
        await harness.ended(job)
    assert await harness.store.read_output(job) == b"why\n"


async def test_job_fails_with_a_message_when_its_inputs_are_too_large(
    harness: AgentHarness,
) -> None:
    large_result = "head -c 12000 /dev/zero | tr '\\0' x | sed 's/.*/\"&\"/' > $WORKRON_RESULT"
    run = await harness.workflow(
        {"name": "many", "count": 100, "command": large_result},
        {"name": "end", "command": "true", "dependsOn": [{"name": "many"}]},
    )
    async with harness.working(await harness.agent(config=QUICK_CONFIG)):
        await harness.ended(run)
    row = (await harness.store.list_jobs(run))[-1]
    assert (row.state, row.reason) == (State.FAILED, Reason.INPUTS_TOO_LARGE)
    assert "return less" in (row.message or "")


async def test_agent_claims_again_at_once_when_all_claims_were_granted(
    harness: AgentHarness,
) -> None:
    harness.slots = Slots(100)
    run = await harness.workflow({"name": "many", "command": "exec sleep 1000", "count": 40})
    # Neither a poll nor a heartbeat wakes it during the test.
    agent = await harness.agent(
        config=AgentConfig(heartbeat=timedelta(hours=1), poll=timedelta(hours=1))
    )
    async with harness.working(agent):
        while len(agent.running) < 40:
            await asyncio.sleep(0)
        agent.kill()
    assert set((await harness.states(run)).values()) <= {State.QUEUED, State.RUNNING, State.WAITING}
