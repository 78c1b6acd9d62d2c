"""The agent when things go wrong: answers that get lost, a store that is away, a lost session."""

import asyncio
import dataclasses
import os
import pathlib
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from tests.worker.shop import QUICK, Shop
from workron.core import errors
from workron.core.plan import Identity, Kind, Plan, PlannedJob, SchedulingTerms, plain_specs
from workron.core.states import Reason, State
from workron.store.api import Store
from workron_worker.config import AgentConfig, Slots
from workron_worker.executor import CommandTask, OnEnd, OnOutput, StartError
from workron_worker.runner_client import RunnerExecutor

_TWICE = """
if [ "$WORKRON_ATTEMPT" = 2 ]; then echo second; exit 0; fi
trap 'echo bye; exit 0' TERM
echo first
sleep 1000 & wait
"""

_FOREVER = timedelta(days=1)


class Door:
    """Stands before a store: it may be shut, and it may swallow an answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_shut = False
        self.swallowed: set[str] = set()
        self.forgets_claims = False
        self.error: errors.StoreError | None = None

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if verb == "wait_for_work":
            return self._store.wait_for_work

        async def call(*given: Any) -> Any:
            if self.is_shut:
                raise self.error or errors.StoreUnreachableError("the store is away")
            answer = await getattr(self._store, verb)(*given)
            if verb == "heartbeat" and self.forgets_claims:
                self.forgets_claims = False
                answer = dataclasses.replace(answer, held=[])
            if verb in self.swallowed:
                self.swallowed.remove(verb)
                raise errors.StoreUnreachableError(f"the answer to {verb} was lost")
            return answer

        return call


class Stumbling:
    """An executor that cannot start anything a number of times."""

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
    shop: Shop, tmp_path: pathlib.Path, verb: str
) -> None:
    door = Door(shop.store)
    door.swallowed = {verb}
    root = await shop.workflow(
        {"name": "many", "count": 3, "command": f"echo $WORKRON_INDEX >> {tmp_path}/ledger"}
    )
    async with shop.working(await shop.agent(door=door)):
        await shop.ended(root)
    assert sorted((tmp_path / "ledger").read_text().split()) == ["0", "1", "2"]
    assert {row.attempts for row in await shop.store.list_jobs(root) if row.kind is Kind.JOB} == {1}


async def test_agent_that_is_cut_off_kills_before_its_lease_is_over_and_hands_back(
    shop: Shop,
) -> None:
    door = Door(shop.store)
    job = await shop.job(command=_TWICE)
    async with shop.working(await shop.agent(door=door)):
        await shop.ear.wait()
        door.is_shut = True
        shop.clock.turned += 6
        await shop.ear.wait()
        assert shop.ear.heard == b"first\nbye\n"
        door.is_shut = False
        row = await shop.ended(job)
    assert (row.state, row.attempts, row.failures, row.losses) == (State.SUCCEEDED, 2, 0, 0)


async def test_agent_that_comes_back_past_its_deadline_kills_although_the_store_answers(
    shop: Shop,
) -> None:
    job = await shop.job(command=_TWICE)
    async with shop.working(await shop.agent()):
        await shop.ear.wait()
        shop.clock.turned += 6
        row = await shop.ended(job)
    assert shop.ear.heard == b"first\nbye\nsecond\n"
    assert (row.state, row.attempts, row.losses) == (State.SUCCEEDED, 2, 0)


async def test_command_that_may_outlive_a_lost_lease_goes_on(
    shop: Shop, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    command = f"trap 'echo bye' TERM; echo on; cat {tmp_path}/go"
    door = Door(shop.store)
    agent = await shop.agent(door=door)
    stays = await shop.job("stays", command=command, onLeaseLost="continue")
    async with shop.working(agent):
        await shop.ear.wait()
        goes = await shop.job("goes", command=_TWICE)
        await shop.ear.wait()
        door.is_shut = True
        shop.clock.turned += 6
        await shop.ear.wait()
        door.is_shut = False
        await shop.ended(goes)
        await asyncio.to_thread((tmp_path / "go").write_text, "went on\n")
        row = await shop.ended(stays)
    assert (row.state, row.attempts) == (State.SUCCEEDED, 1)
    assert await shop.store.read_output(stays) == b"on\nwent on\n"


async def test_agent_whose_session_is_gone_kills_and_begins_anew(shop: Shop) -> None:
    # With no slot free it asks the store for nothing: only its beat can tell.
    shop.slots = Slots(1)
    job = await shop.job(command=_TWICE)
    async with shop.working(await shop.agent()):
        await shop.ear.wait()
        [worker] = await shop.store.list_heartbeats()
        assert (await shop.store.reap(worker.worker, version=None)).was_reaped
        row = await shop.ended(job)
    assert shop.ear.heard == b"first\nbye\nsecond\n"
    assert (row.state, row.attempts, row.losses) == (State.SUCCEEDED, 2, 1)
    assert await shop.store.read_output(job) == b"second\n"


async def test_command_whose_claim_the_store_counts_no_more_is_killed_and_not_reported(
    shop: Shop,
) -> None:
    door = Door(shop.store)
    job = await shop.job(command=_TWICE)
    async with shop.working(await shop.agent(door=door)):
        await shop.ear.wait()
        door.forgets_claims = True
        row = await shop.ended(job)
    assert shop.ear.heard == b"first\nbye\nsecond\n"
    assert (row.state, row.attempts, row.failures) == (State.SUCCEEDED, 2, 0)


async def test_job_that_this_machine_could_not_start_is_tried_again_uncounted(shop: Shop) -> None:
    shop.executor = cast("RunnerExecutor", Stumbling(shop.executor, times=2))
    job = await shop.job(command="true")
    async with shop.working(await shop.agent()):
        row = await shop.ended(job)
    assert (row.state, row.failures, row.losses) == (State.SUCCEEDED, 0, 0)


async def test_many_that_could_not_be_started_at_one_moment_count_once(shop: Shop) -> None:
    shop.executor = cast("RunnerExecutor", Stumbling(shop.executor, times=4 * 4))
    jobs = [await shop.job(f"job-{number}", command="true") for number in range(4)]
    async with shop.working(await shop.agent()):
        for job in jobs:
            assert (await shop.ended(job)).state is State.SUCCEEDED


async def test_agent_gives_up_when_this_machine_starts_nothing(shop: Shop) -> None:
    shop.executor = cast("RunnerExecutor", Stumbling(shop.executor, times=100))
    await shop.workflow({"name": "many", "count": 4, "command": "true"})
    with pytest.raises(StartError, match="out of processes"):
        await (await shop.agent()).run()
    # No lease has to pass before others can have what it held.
    assert await shop.store.list_heartbeats() == []


async def test_agent_gives_up_when_the_store_is_away_for_too_long(shop: Shop) -> None:
    door = Door(shop.store)
    door.is_shut = True
    impatient = AgentConfig(store_timeout=timedelta(0))
    with pytest.raises(errors.StoreUnreachableError, match="away"):
        await (await shop.agent(door=door, config=impatient)).run()


async def test_killed_agent_does_not_wait_for_a_store_that_is_away(shop: Shop) -> None:
    door = Door(shop.store)
    await shop.job(command="echo on; exec sleep 1000")
    agent = await shop.agent(door=door, config=dataclasses.replace(QUICK, store_timeout=_FOREVER))
    work = asyncio.create_task(agent.run())
    await shop.ear.wait()
    door.is_shut = True
    agent.kill()
    with pytest.raises(errors.StoreUnreachableError):
        await work


async def test_agent_gives_up_at_once_when_the_disk_is_full(shop: Shop) -> None:
    door = Door(shop.store)
    job = await shop.job(command="echo on; exec sleep 1000")
    agent = await shop.agent(door=door)
    work = asyncio.create_task(agent.run())
    await shop.ear.wait()
    door.is_shut, door.error = True, errors.StoreFullError("no space is left")
    await shop.store.cancel(job)
    agent.kill()
    with pytest.raises(errors.StoreFullError):
        await work


async def test_spec_that_cannot_be_read_fails_its_job_in_words(shop: Shop) -> None:
    plan = Plan(
        identity=Identity("default", Kind.JOB, "odd", uuid.uuid4()),
        digest="odd",
        nodes=[PlannedJob(Kind.JOB, "odd", 0)],
        terms=[SchedulingTerms()],
        specs=plain_specs([{"command": 5}]),
    )
    [submitted] = await shop.store.submit([plan])
    async with shop.working(await shop.agent(config=QUICK)):
        row = await shop.ended(submitted.run)
    assert (row.state, row.reason) == (State.FAILED, Reason.COMMAND_NOT_FOUND)
    assert "this worker cannot read the job's spec" in (row.message or "")


async def test_fields_of_a_newer_program_do_not_keep_a_job_from_running(shop: Shop) -> None:
    plan = Plan(
        identity=Identity("default", Kind.JOB, "new", uuid.uuid4()),
        digest="new",
        nodes=[PlannedJob(Kind.JOB, "new", 0)],
        terms=[SchedulingTerms()],
        specs=plain_specs([{"command": "true", "inventedLater": {"a": 1}}]),
    )
    [submitted] = await shop.store.submit([plan])
    async with shop.working(await shop.agent()):
        assert (await shop.ended(submitted.run)).state is State.SUCCEEDED
