"""The agent at work: real commands, a store in memory, and nothing in its way."""

import asyncio
import json
import os
import pathlib
from datetime import timedelta
from typing import Any

import pytest

from tests.worker.shop import QUICK, Shop
from workron.core.states import Reason, State
from workron_worker.config import AgentConfig, Slots


async def test_agent_runs_a_dag_to_its_end(shop: Shop) -> None:
    root = await shop.workflow(
        {"name": "end", "command": "true", "dependsOn": [{"name": "many"}]},
        {"name": "many", "command": "true", "count": 10, "dependsOn": [{"name": "begin"}]},
        {"name": "begin", "command": "true"},
    )
    async with shop.working(await shop.agent()):
        assert (await shop.ended(root)).state is State.SUCCEEDED
    assert set((await shop.states(root)).values()) == {State.SUCCEEDED}


async def test_results_are_handed_downstream(shop: Shop) -> None:
    root = await shop.workflow(
        {"name": "one", "command": 'echo 7 > "$WORKRON_RESULT"'},
        {"name": "all", "items": [1, 2], "command": "echo [$WORKRON_ITEM] > $WORKRON_RESULT"},
        {
            "name": "end",
            "command": "cat $WORKRON_INPUTS",
            "dependsOn": [{"name": "one"}, {"name": "all"}],
        },
    )
    async with shop.working(await shop.agent()):
        await shop.ended(root)
    assert json.loads(await shop.output(root, "end")) == {"one": 7, "all": [[1], [2]]}


async def test_command_learns_which_attempt_of_which_job_it_is(shop: Shop) -> None:
    root = await shop.workflow({"name": "many", "count": 1, "items": None, "command": "env"})
    async with shop.working(await shop.agent()):
        await shop.ended(root)
    [claimed] = shop.heard_of
    lines = (await shop.store.read_output(claimed.job)).decode().splitlines()
    assert {
        f"WORKRON_JOB_ID={claimed.job}",
        "WORKRON_ATTEMPT=1",
        f"WORKRON_FENCE={claimed.fence}",
        "WORKRON_INDEX=0",
        f"WORKRON_BOOT={shop.boot}",
    } <= set(lines)


@pytest.mark.parametrize(
    ("item", "shown"), [("a b", "a b"), (True, "true"), (1.5, "1.5"), (-3, "-3"), ("", "")]
)
async def test_item_is_written_as_in_a_manifest(shop: Shop, item: object, shown: str) -> None:
    root = await shop.workflow(
        {"name": "many", "items": [item], "command": 'printf %s "$WORKRON_ITEM"'}
    )
    async with shop.working(await shop.agent()):
        await shop.ended(root)
    assert await shop.store.read_output(shop.heard_of[0].job) == shown.encode()


async def test_failed_command_is_tried_again_until_its_attempts_are_used_up(shop: Shop) -> None:
    job = await shop.job(command="exit 3", maxAttempts=2, backoff={"initial": "1ms"})
    async with shop.working(await shop.agent()):
        row = await shop.ended(job)
    assert (row.state, row.reason, row.exit_code) == (State.FAILED, Reason.EXIT_CODE, 3)
    assert (row.attempts, row.failures, row.losses) == (2, 2, 0)


async def test_failed_command_may_succeed_at_its_next_attempt(shop: Shop) -> None:
    job = await shop.job(command='test "$WORKRON_ATTEMPT" = 2', backoff={"initial": "1ms"})
    async with shop.working(await shop.agent()):
        row = await shop.ended(job)
    assert (row.state, row.attempts, row.failures) == (State.SUCCEEDED, 2, 1)


async def test_timeout_of_an_attempt_is_reported(shop: Shop) -> None:
    job = await shop.job(command="exec sleep 1000", timeout="100ms", maxAttempts=1)
    async with shop.working(await shop.agent()):
        row = await shop.ended(job)
    assert (row.state, row.reason) == (State.FAILED, Reason.TIMEOUT)


async def test_cancel_reaches_a_running_command_with_the_next_beat(shop: Shop) -> None:
    job = await shop.job(command="echo on; exec sleep 1000")
    async with shop.working(await shop.agent()):
        await shop.ear.wait()
        assert await shop.store.cancel(job)
        assert (await shop.ended(job)).state is State.CANCELLED


async def test_deadline_of_a_job_ends_its_running_command(shop: Shop) -> None:
    job = await shop.job(command="echo on; exec sleep 1000", deadline="1h")
    async with shop.working(await shop.agent()):
        await shop.ear.wait()
        shop.clock.turned += timedelta(hours=2).total_seconds()
        row = await shop.ended(job)
    assert (row.state, row.reason) == (State.FAILED, Reason.DEADLINE_EXCEEDED)


async def test_draining_agent_finishes_what_runs_and_claims_no_more(
    shop: Shop, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    first = await shop.job("first", command=f"echo on; cat {tmp_path}/go")
    agent = await shop.agent()
    async with shop.working(agent) as work:
        await shop.ear.wait()
        agent.drain()
        second = await shop.job("second", command="true")
        await asyncio.to_thread((tmp_path / "go").write_text, "go")
        await work
    assert (await shop.states(first))["first"] is State.SUCCEEDED
    assert (await shop.states(second))["second"] is State.QUEUED


async def test_draining_agent_beats_on(shop: Shop, tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "go")
    await shop.job(command=f"echo on; cat {tmp_path}/go")
    agent = await shop.agent()
    async with shop.working(agent) as work:
        await shop.ear.wait()
        agent.drain()
        [before] = await shop.store.list_heartbeats()
        while (await shop.store.list_heartbeats())[
            0
        ].version.heartbeats < before.version.heartbeats + 3:
            assert not work.done()
        await asyncio.to_thread((tmp_path / "go").write_text, "go")
        await work


async def test_drain_that_the_store_asks_for_is_obeyed(shop: Shop) -> None:
    agent = await shop.agent()
    async with shop.working(agent) as work:
        await shop.ended(await shop.job(command="true"))
        [worker] = await shop.store.list_heartbeats()
        await shop.store.drain(worker.worker)
        await work
    assert list(await shop.store.list_heartbeats()) == []


async def test_killed_agent_hands_back_what_ran_and_nothing_is_counted(shop: Shop) -> None:
    job = await shop.job(command="echo on; exec sleep 1000")
    agent = await shop.agent()
    async with shop.working(agent) as work:
        await shop.ear.wait()
        agent.kill()
        await work
    [row] = await shop.store.list_jobs(job)
    assert (row.state, row.failures, row.losses) == (State.QUEUED, 0, 0)


async def test_agent_that_is_killed_as_it_is_given_claims_starts_none_of_them(shop: Shop) -> None:
    job = await shop.job(command="true")

    class Door:
        def __getattr__(self, verb: str) -> Any:
            return getattr(shop.store, verb)

        async def claim(self, *given: Any) -> Any:
            granted = await shop.store.claim(*given)
            agent.kill()
            return granted

    agent = await shop.agent(door=Door())
    async with shop.working(agent) as work:
        await work
    [row] = await shop.store.list_jobs(job)
    assert (row.state, row.failures, shop.heard_of) == (State.QUEUED, 0, [])


async def test_agent_leaves_no_trace_of_itself_when_it_is_done(shop: Shop) -> None:
    async with shop.working(await shop.agent()):
        await shop.ended(await shop.job(command="true"))
    assert list(await shop.store.list_heartbeats()) == []


async def test_agents_of_two_pools_share_the_slots(shop: Shop, tmp_path: pathlib.Path) -> None:
    shop.slots = Slots(1)
    alone = f"mkdir {tmp_path}/lock && sleep 0.05 && rmdir {tmp_path}/lock"
    roots = [
        await shop.job(f"{pool}-{number}", pool=pool, command=alone, maxAttempts=1)
        for number in range(5)
        for pool in ("a", "b")
    ]
    one, other = await shop.agent(pool="a"), await shop.agent(pool="b")
    async with shop.working(one), shop.working(other):
        for root in roots:
            assert (await shop.ended(root)).state is State.SUCCEEDED


async def test_output_of_a_failed_attempt_is_kept(shop: Shop) -> None:
    job = await shop.job(command="echo why; exit 1", maxAttempts=1, outputLimitBytes=100)
    async with shop.working(await shop.agent()):
        await shop.ended(job)
    assert await shop.store.read_output(job) == b"why\n"


async def test_inputs_that_are_too_large_fail_the_job_in_words(shop: Shop) -> None:
    big = "head -c 12000 /dev/zero | tr '\\0' x | sed 's/.*/\"&\"/' > $WORKRON_RESULT"
    root = await shop.workflow(
        {"name": "many", "count": 100, "command": big},
        {"name": "end", "command": "true", "dependsOn": [{"name": "many"}]},
    )
    async with shop.working(await shop.agent(config=QUICK)):
        await shop.ended(root)
    row = (await shop.store.list_jobs(root))[-1]
    assert (row.state, row.reason) == (State.FAILED, Reason.INPUTS_TOO_LARGE)
    assert "return less" in (row.message or "")


async def test_agent_that_got_all_it_asked_for_asks_again_at_once(shop: Shop) -> None:
    shop.slots = Slots(100)
    root = await shop.workflow({"name": "many", "command": "exec sleep 1000", "count": 40})
    # By no poll that the test would live to see, and no beat.
    agent = await shop.agent(
        config=AgentConfig(heartbeat=timedelta(hours=1), poll=timedelta(hours=1))
    )
    async with shop.working(agent):
        while len(agent.running) < 40:
            await asyncio.sleep(0)
        agent.kill()
    assert set((await shop.states(root)).values()) <= {State.QUEUED, State.RUNNING, State.WAITING}
