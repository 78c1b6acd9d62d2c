"""`reap_dead_workers` reaps dead workers of this machine and no other workers."""

import random
import uuid
from collections.abc import AsyncIterator

import pytest

from tests.scheduling.conftest import job, submit
from workron.cli import local_workers, system_clock
from workron.core.ids import ClaimId
from workron.core.states import State
from workron.store import connect
from workron.store.api import Store
from workron.store.types import Registration, Session
from workron_runner import boot_cleanup
from workron_worker import identity


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    store = await connect.connect("memory:", clock=system_clock.CLOCK, rng=random.Random())
    yield store
    await store.close()


def _dead_name() -> str:
    host, pid, start = identity.process_name().split(":")
    return f"{host}:{pid}:{int(start) - 1}"


async def _register(store: Store, name: str) -> Session:
    token = await store.ensure_pool("default", "default")
    return await store.register(Registration(token, name, uuid.uuid4(), 1))


async def test_worker_is_reaped_when_its_process_is_dead(store: Store) -> None:
    for name in (_dead_name(), identity.process_name(), "elsewhere-12345678:1:1"):
        await _register(store, name)
    assert list(await local_workers.reap_dead_workers(store)) == []
    names = {worker.name for worker in await store.list_heartbeats()}
    assert names == {identity.process_name(), "elsewhere-12345678:1:1"}


async def test_claims_are_requeued_without_a_loss_when_a_worker_is_proven_dead(
    store: Store,
) -> None:
    run = await submit(store, job("a"))
    session = await _register(store, _dead_name())
    assert len(await store.claim(session.key, [ClaimId(uuid.uuid4())])) == 1
    await local_workers.reap_dead_workers(store)
    [row] = await store.list_jobs(run)
    assert (row.state, row.losses) == (State.QUEUED, 0)


async def test_election_of_the_maintainer_ends_when_its_process_is_dead(store: Store) -> None:
    await _register(store, _dead_name())
    [worker] = await store.list_heartbeats()
    assert await store.elect(worker.boot, 1000.0)
    await local_workers.reap_dead_workers(store)
    assert await store.elect(uuid.uuid4(), 1000.0)


async def test_worker_is_not_reaped_when_its_processes_cannot_be_killed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _register(store, _dead_name())
    incomplete = boot_cleanup.CleanupResult(3, is_complete=False)
    monkeypatch.setattr(boot_cleanup, "clean_up_boot", lambda _: incomplete)
    [line] = await local_workers.reap_dead_workers(store)
    assert "are requeued when its lease expires: some of its processes cannot be ended" in line
    assert len(await store.list_heartbeats()) == 1
