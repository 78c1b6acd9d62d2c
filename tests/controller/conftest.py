"""A store in memory, the state of the controller, and a fake API server."""

import random
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.manual_clock import ManualClock
from workron.store import connect
from workron.store.api import Store
from workron.store.types import Registration, Session
from workron_controller.jobs.cache import ObjectCache
from workron_controller.jobs.object_handler import ObjectHandler
from workron_controller.jobs.workqueue import Workqueue
from workron_controller.kube import auth
from workron_controller.kube.auth import ApiAccess
from workron_controller.kube.client import ApiClient, RetryingCalls


@pytest.fixture
def time() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(time: ManualClock) -> AsyncIterator[Store]:
    store = await connect.connect("memory:", clock=time, rng=random.Random())
    yield store
    await store.close()


@pytest.fixture
def objects() -> ObjectCache:
    return ObjectCache()


@pytest.fixture
def workqueue(time: ManualClock) -> Workqueue:
    return Workqueue(time)


@pytest.fixture
def handler(objects: ObjectCache, workqueue: Workqueue) -> ObjectHandler:
    return ObjectHandler(objects, workqueue)


@pytest.fixture
async def session(store: Store) -> Session:
    """A worker of the default pool; its lease is longer than any test."""
    token = await store.ensure_pool("default", "default", lease_seconds=300)
    return await store.register(Registration(token, "worker", uuid.UUID(int=1), slots=10))


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with FakeApi() as api:
        yield api


@pytest.fixture
def access(api: FakeApi, time: ManualClock, tmp_path: Path) -> ApiAccess:
    return auth.find_api_server(time, {"KUBECONFIG": str(api.kubeconfig(tmp_path))})


@pytest.fixture
async def server(access: ApiAccess) -> AsyncIterator[ApiClient]:
    async with ApiClient(access, seconds=10) as server:
        yield server


@pytest.fixture
def retrying(time: ManualClock) -> RetryingCalls:
    return RetryingCalls(time, random.Random(1), seconds=60, sleep=time.sleep)
