"""Transient errors are retried, and no others."""

import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB
from tests.controller.manual_clock import ManualClock
from workron_controller.kube import errors
from workron_controller.kube.client import ApiClient, RetryingCalls

_ONE = JOB.resource.at("default", "one")


class _SteppingClock(ManualClock):
    """Advances by each pause at once."""

    async def sleep(self, seconds: float, /) -> None:
        self.slept.append(seconds)
        self.advance(seconds)


@pytest.fixture
def time() -> ManualClock:
    return _SteppingClock()


@pytest.mark.parametrize("code", [429, 500, 502, 503])
async def test_call_is_retried_when_the_error_is_transient(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, code: int
) -> None:
    made = api.add(JOB, "one")
    api.faults.refuse(code, times=3, text="" if code == 502 else None)
    assert await retrying(lambda: server.get(_ONE)) == made
    assert len(api.requests.all) == 4


@pytest.mark.parametrize("code", [400, 403, 409, 410, 422])
async def test_error_is_raised_at_once_when_it_is_not_transient(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, code: int
) -> None:
    api.faults.refuse(code)
    with pytest.raises(errors.ApiError):
        await retrying(lambda: server.get(_ONE))
    assert len(api.requests.all) == 1


async def test_call_is_retried_when_the_connection_is_lost(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    body = {"apiVersion": JOB.version, "kind": "Job", "metadata": {"name": "one"}}
    api.faults.disconnect(is_done=True, verb="create")
    with pytest.raises(errors.ConflictError):
        await retrying(lambda: server.create(JOB.resource.at("default"), body))
    assert api.find(JOB, "one") is not None


async def test_pause_is_as_long_as_the_server_asks_for(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    api.add(JOB, "one")
    api.faults.refuse(429, retry_after=20, times=2)
    await retrying(lambda: server.get(_ONE))
    assert [20 < slept < 21 for slept in time.slept] == [True, True]


async def test_pauses_grow_and_have_jitter(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    api.add(JOB, "one")
    api.faults.refuse(503, times=5)
    await retrying(lambda: server.get(_ONE))
    bounds = [(0.25, 0.5), (0.5, 1), (1, 2), (2, 4), (4, 8)]
    inside = [low <= slept < high for slept, (low, high) in zip(time.slept, bounds, strict=True)]
    assert all(inside), time.slept
    assert len({slept / high for slept, (_, high) in zip(time.slept, bounds, strict=True)}) == 5


async def test_error_is_raised_when_time_is_up(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    api.faults.refuse(503, times=100)
    with pytest.raises(errors.UnreachableError):
        await retrying(lambda: server.get(_ONE))
    assert time.monotonic() <= 60
    assert len(api.requests.all) < 20


async def test_error_is_raised_at_once_when_the_server_asks_for_a_longer_pause(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    api.faults.refuse(429, retry_after=3600)
    with pytest.raises(errors.BusyError):
        await retrying(lambda: server.get(_ONE))
    assert time.slept == []
