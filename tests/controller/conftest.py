"""A fake API server, the way to it, and a clock that stands still."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.hand_time import HandTime
from workron_controller.api import access
from workron_controller.api.access import Access
from workron_controller.api.retrying import Retrying
from workron_controller.api.server import Server


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with FakeApi() as api:
        yield api


@pytest.fixture
def time() -> HandTime:
    return HandTime()


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
