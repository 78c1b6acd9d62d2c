"""A stop that comes while a claim is on its way to its command."""

import asyncio
import pathlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.worker.shop import Shop
from workron.core.states import State
from workron.store.protocol import Store
from workron_worker.loop import Agent


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
    [row] = await shop.store.jobs(job)
    assert (row.state, row.attempts, row.losses) == (State.QUEUED, 1, 0)


@pytest.mark.parametrize("stop", ["cut_off", "lose"])
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
        [worker] = await shop.store.look()
        await shop.store.reap(worker.worker, sign=None, is_blaming=False)
        await lost.wait()

    def lose() -> None:
        Agent.lose(agent)
        lost.set()

    job = await shop.job(command=f"echo begin $WORKRON_ATTEMPT >> {tmp_path}/ledger")
    agent = await shop.agent(door=Interrupted(shop.store, lose_first))
    monkeypatch.setattr(agent, "lose", lose)
    async with shop.working(agent):
        await shop.ended(job)
    assert (tmp_path / "ledger").read_text() == "begin 2\n"
