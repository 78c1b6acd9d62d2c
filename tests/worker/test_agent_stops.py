"""An agent that stops while a claim is granted, started or reported."""

import asyncio
import dataclasses
import pathlib
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from tests.worker.agent_harness import QUICK_CONFIG, AgentHarness
from workron.core import errors
from workron.core.ids import SessionKey
from workron.core.states import State
from workron.store.api import Store
from workron.store.types import Session
from workron_worker.agent import Agent
from workron_worker.claims import RunningClaim
from workron_worker.config import Slots
from workron_worker.executor import CommandTask, OnEnd, OnOutput, StartError
from workron_worker.runner_client import RunnerExecutor


class InterruptingStore:
    """Calls a function between the first grant of claims and its answer."""

    def __init__(self, store: Store, interrupt: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._interrupt: Callable[[], Awaitable[None]] | None = interrupt

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*arguments: Any) -> Any:
            answer = await getattr(self._store, name)(*arguments)
            if name == "claim" and answer and self._interrupt:
                interrupt, self._interrupt = self._interrupt, None
                await interrupt()
            return answer

        return call


async def test_killed_agent_releases_claims_that_were_just_granted(harness: AgentHarness) -> None:
    async def kill_soon() -> None:
        asyncio.get_running_loop().call_soon(agent.kill)

    job = await harness.job(command="echo on; exec sleep 1000")
    agent = await harness.agent(store=InterruptingStore(harness.store, kill_soon))
    await agent.run()
    assert harness.collector.received == b""
    [row] = await harness.store.list_jobs(job)
    assert (row.state, row.attempts, row.losses) == (State.QUEUED, 1, 0)


@pytest.mark.parametrize("stop", ["lease_may_have_expired", "session_lost"])
async def test_granted_command_does_not_start_when_the_lease_may_have_expired(
    harness: AgentHarness, stop: str
) -> None:
    async def stop_soon() -> None:
        asyncio.get_running_loop().call_soon(getattr(agent, stop))

    job = await harness.job(command="echo on $WORKRON_ATTEMPT")
    agent = await harness.agent(store=InterruptingStore(harness.store, stop_soon))
    async with harness.working(agent):
        row = await harness.ended(job)
    assert harness.collector.received == b"on 2\n"
    assert (row.state, row.attempts, row.losses) == (State.SUCCEEDED, 2, 0)


async def test_granted_command_does_not_start_when_the_session_was_lost_before_the_answer(
    harness: AgentHarness, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = asyncio.Event()

    async def reap() -> None:
        [worker] = await harness.store.list_heartbeats()
        await harness.store.reap(worker.worker, version=None, charge_losses=False)
        await lost.wait()

    def session_lost() -> None:
        Agent.session_lost(agent)
        lost.set()

    job = await harness.job(command=f"echo attempt $WORKRON_ATTEMPT >> {tmp_path}/attempts")
    agent = await harness.agent(store=InterruptingStore(harness.store, reap))
    monkeypatch.setattr(agent, "session_lost", session_lost)
    async with harness.working(agent):
        await harness.ended(job)
    assert (tmp_path / "attempts").read_text() == "attempt 2\n"


class RefusingExecutor:
    """An executor that refuses every start, five in each iteration of the event loop."""

    def __init__(self, executor: RunnerExecutor) -> None:
        self._executor = executor
        self._waiting: list[OnEnd] = []

    def start(self, task: CommandTask, on_end: OnEnd, on_output: OnOutput | None = None) -> None:
        del task, on_output
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._refuse)
        self._waiting.append(on_end)

    def _refuse(self) -> None:
        now, self._waiting = self._waiting[:5], self._waiting[5:]
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._refuse)
        for on_end in now:
            on_end(StartError("out of processes"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


async def test_failed_agent_ends_when_its_executor_refuses_every_start(
    harness: AgentHarness,
) -> None:
    config = dataclasses.replace(QUICK_CONFIG, max_start_failures=1)
    harness.executor = cast("RunnerExecutor", RefusingExecutor(harness.executor))
    harness.slots = Slots(30)
    await harness.workflow({"name": "many", "count": 30, "command": "true"})
    with pytest.raises(StartError):
        await (await harness.agent(config=config)).run()


async def test_new_session_is_kept_when_an_error_of_the_old_one_is_late(
    harness: AgentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, may_answer = await harness.agent(), asyncio.Event()

    async def report(_: SessionKey) -> None:
        await may_answer.wait()
        raise errors.SessionError("unknown session key")

    monkeypatch.setattr(agent._exchange, "report_in_parallel", report)
    async with harness.working(agent):
        while (old := agent._key) is None:
            await asyncio.sleep(0)
        agent._exchange._has_many.set()
        await harness.store.deregister(old)
        job = await harness.job(command="echo on; exec sleep 1000")
        await harness.collector.wait()
        new = agent._key
        may_answer.set()
        for _ in range(100):
            await asyncio.sleep(0)
        assert agent._key == new != old
        agent.kill()
    [row] = await harness.store.list_jobs(job)
    assert (row.state, row.attempts) == (State.QUEUED, 1)


async def test_agent_waits_for_running_commands_when_it_is_cancelled_repeatedly(
    harness: AgentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.job(command="trap 'echo bye; sleep 0.3; exit' TERM; echo on; sleep 1000 & wait")
    agent = await harness.agent()

    async def fail(*_: object) -> None:
        raise errors.PermissionDeniedError("no")

    work = asyncio.create_task(agent.run())
    await harness.collector.wait()
    monkeypatch.setattr(agent._exchange, "exchange", fail)
    agent._wake.set()
    await harness.collector.wait()
    for _ in range(3):
        work.cancel()
        await asyncio.sleep(0)
    assert agent.running
    with pytest.raises(BaseException):  # noqa: B017, PT011 - any of the errors may be the last
        await work
    assert not agent.running


async def test_granted_streamed_command_does_not_start_when_the_agent_is_killed(
    harness: AgentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await harness.job(command="echo on; exec sleep 1000", outputStreamBytes=1000)
    agent = await harness.agent()
    begin = agent._attempts.begin

    def begin_and_kill(running: RunningClaim, session: Session) -> None:
        begin(running, session)
        agent.kill()

    monkeypatch.setattr(agent._attempts, "begin", begin_and_kill)
    await agent.run()
    assert harness.collector.received == b""
    [row] = await harness.store.list_jobs(job)
    assert row.state is State.QUEUED
