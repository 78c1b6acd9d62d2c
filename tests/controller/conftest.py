"""A store in memory, and what the operator keeps beside it."""

import random
import uuid
from collections.abc import AsyncIterator

import pytest

from tests.controller.cluster import HandClock
from workron.store import connect
from workron.store.protocol import Registration, Session, Store
from workron_controller.intake.hearing import Ear
from workron_controller.intake.inbox import Inbox
from workron_controller.objects import Objects


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def store(clock: HandClock) -> AsyncIterator[Store]:
    store = await connect.connect("memory:", clock=clock, rng=random.Random())
    yield store
    await store.close()


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def ear(objects: Objects, inbox: Inbox) -> Ear:
    return Ear(objects, inbox)


@pytest.fixture
async def session(store: Store) -> Session:
    """A worker of the pool that jobs are in who name none."""
    token = await store.ensure_pool("default", "default")
    return await store.register(Registration(token, "worker", uuid.UUID(int=1), slots=10))
