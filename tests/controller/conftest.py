"""A store in memory, what the operator keeps beside it, and a fake API server."""

import random
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.hand_time import HandTime
from workron.store import connect
from workron.store.protocol import Registration, Session, Store
from workron_controller.api import access
from workron_controller.api.access import Access
from workron_controller.api.retrying import Retrying
from workron_controller.api.server import Server
from workron_controller.intake.hearing import Ear
from workron_controller.intake.inbox import Inbox
from workron_controller.objects import Objects


@pytest.fixture
def time() -> HandTime:
    return HandTime()


@pytest.fixture
async def store(time: HandTime) -> AsyncIterator[Store]:
    store = await connect.connect("memory:", clock=time, rng=random.Random())
    yield store
    await store.close()


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture
def inbox(time: HandTime) -> Inbox:
    return Inbox(time)


@pytest.fixture
def ear(objects: Objects, inbox: Inbox) -> Ear:
    return Ear(objects, inbox)


@pytest.fixture
async def session(store: Store) -> Session:
    """A worker of the pool that jobs are in who name none; it needs no beat within a test."""
    token = await store.ensure_pool("default", "default", lease_seconds=300)
    return await store.register(Registration(token, "worker", uuid.UUID(int=1), slots=10))


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with FakeApi() as api:
        yield api


@pytest.fixture
def way_in(api: FakeApi, time: HandTime, tmp_path: Path) -> Access:
    return access.find(time, {"KUBECONFIG": str(api.kubeconfig(tmp_path))})


@pytest.fixture
async def server(way_in: Access) -> AsyncIterator[Server]:
    async with Server(way_in, seconds=10) as server:
        yield server


@pytest.fixture
def retrying(time: HandTime) -> Retrying:
    return Retrying(time, random.Random(1), seconds=60, sleep=time.sleep)
