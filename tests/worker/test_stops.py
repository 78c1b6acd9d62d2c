"""A stop that comes while a claim is on its way to its command."""

import asyncio
import pathlib
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from tests.worker.shop import Shop
from workron.core import errors
from workron.core.ids import SessionKey
from workron.core.states import State
from workron.store.api import Store
from workron_worker import attempt
from workron_worker.agent import Agent
from workron_worker.claims import RunningClaim
from workron_worker.config import Slots
from workron_worker.executor import CommandTask, OnEnd, OnOutput, StartError
from workron_worker.runner_client import RunnerExecutor


class Interrupted:
    """Stands before a store, and lets something happen between the first grant and its arrival."""

    def __init__(self, store: Store, happen: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._happen: Callable[[], Awaitable[None]] | None = happen

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def call(*given: Any) -> Any:
            answer = await getattr(self._store, verb)(*given)
            if verb == "claim" and answer and self._happen:
                happen, self._happen = self._happen, None
                await happen()
            return answer

        return call


async def test_killed_agent_hands_back_what_was_just_granted(shop: Shop) -> None:
    async def kill_right_after() -> None:
        asyncio.get_running_loop().call_soon(agent.kill)

    job = await shop.job(command="echo on; exec sleep 1000")
    agent = await shop.agent(door=Interrupted(shop.store, kill_right_after))
    await agent.run()
    assert shop.ear.heard == b""
    [row] = await shop.store.list_jobs(job)
    assert (row.state, row.attempts, row.losses) == (State.QUEUED, 1, 0)


@pytest.mark.parametrize("stop", ["lease_may_have_expired", "session_lost"])
async def test_command_that_was_just_granted_does_not_start_when_the_lease_may_be_over(
    shop: Shop, stop: str
) -> None:
    async def stop_right_after() -> None:
        asyncio.get_running_loop().call_soon(getattr(agent, stop))

    job = await shop.job(command="echo on $WORKRON_ATTEMPT")
    agent = await shop.agent(door=Interrupted(shop.store, stop_right_after))
    async with shop.working(agent):
        row = await shop.ended(job)
    assert shop.ear.heard == b"on 2\n"
    assert (row.state, row.attempts, row.losses) == (State.SUCCEEDED, 2, 0)


async def test_command_does_not_start_when_the_session_was_lost_before_its_grant_came(
    shop: Shop, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = asyncio.Event()

    async def lose_first() -> None:
        [worker] = await shop.store.list_heartbeats()
        await shop.store.reap(worker.worker, version=None, charge_losses=False)
        await lost.wait()

    def lose() -> None:
        Agent.session_lost(agent)
        lost.set()

    job = await shop.job(command=f"echo begin $WORKRON_ATTEMPT >> {tmp_path}/ledger")
    agent = await shop.agent(door=Interrupted(shop.store, lose_first))
    monkeypatch.setattr(agent, "session_lost", lose)
    async with shop.working(agent):
        await shop.ended(job)
    assert (tmp_path / "ledger").read_text() == "begin 2\n"


class Refusing:
    """An executor that refuses whatever it is given, all of one turn together."""

    def __init__(self, executor: RunnerExecutor) -> None:
        self._executor = executor
        self._waiting: list[OnEnd] = []

    def start(self, task: CommandTask, on_end: OnEnd, on_output: OnOutput | None = None) -> None:
        del task, on_output
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._tell)
        self._waiting.append(on_end)

    def _tell(self) -> None:
        now, self._waiting = self._waiting[:5], self._waiting[5:]
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._tell)
        for on_end in now:
            on_end(StartError("out of processes"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


async def test_agent_that_fails_waits_for_nothing_that_nobody_ends(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "_MAX_START_FAILURES", 1)
    shop.executor, shop.slots = cast("RunnerExecutor", Refusing(shop.executor)), Slots(30)
    await shop.workflow({"name": "many", "count": 30, "command": "true"})
    with pytest.raises(StartError):
        await (await shop.agent()).run()


async def test_late_word_about_an_old_session_leaves_the_new_one_alone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, may_answer = await shop.agent(), asyncio.Event()

    async def beside(_: SessionKey) -> None:
        await may_answer.wait()
        raise errors.SessionError("unknown session key")

    monkeypatch.setattr(agent._exchange, "report_in_parallel", beside)
    async with shop.working(agent):
        while (old := agent._key) is None:
            await asyncio.sleep(0)
        agent._exchange._has_many.set()
        await shop.store.deregister(old)
        job = await shop.job(command="echo on; exec sleep 1000")
        await shop.ear.wait()
        new = agent._key
        may_answer.set()
        for _ in range(100):
            await asyncio.sleep(0)
        assert agent._key == new != old
        agent.kill()
    [row] = await shop.store.list_jobs(job)
    assert (row.state, row.attempts) == (State.QUEUED, 1)


async def test_agent_leaves_when_nothing_runs_any_more_however_often_it_is_given_up(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.job(command="trap 'echo bye; sleep 0.3; exit' TERM; echo on; sleep 1000 & wait")
    agent = await shop.agent()

    async def fail(*_: object) -> None:
        raise errors.PermissionDeniedError("no")

    work = asyncio.create_task(agent.run())
    await shop.ear.wait()
    monkeypatch.setattr(agent._exchange, "exchange", fail)
    agent._wake.set()
    await shop.ear.wait()
    for _ in range(3):
        work.cancel()
        await asyncio.sleep(0)
    assert agent.running
    with pytest.raises(BaseException):  # noqa: B017, PT011 - of the errors any may be the last
        await work
    assert not agent.running


async def test_streamed_command_that_was_just_granted_does_not_start_when_the_agent_is_killed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await shop.job(command="echo on; exec sleep 1000", outputStreamBytes=1000)
    agent = await shop.agent()
    begin = agent._attempts.begin

    def begin_and_be_killed(running: RunningClaim, key: SessionKey) -> None:
        begin(running, key)
        agent.kill()

    monkeypatch.setattr(agent._attempts, "begin", begin_and_be_killed)
    await agent.run()
    assert shop.ear.heard == b""
    [row] = await shop.store.list_jobs(job)
    assert row.state is State.QUEUED
