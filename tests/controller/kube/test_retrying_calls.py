"""What passes is repeated, and nothing else."""

import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB
from tests.controller.manual_clock import ManualClock
from workron_controller.kube import errors
from workron_controller.kube.client import ApiClient, RetryingCalls

_ONE = JOB.resource.at("default", "one")


class _Hasty(ManualClock):
    """Sleeps no longer than it takes to say so."""

    async def sleep(self, seconds: float, /) -> None:
        self.slept.append(seconds)
        self.turn(seconds)


@pytest.fixture
def time() -> ManualClock:
    return _Hasty()


@pytest.mark.parametrize("code", [429, 500, 502, 503])
async def test_what_passes_is_repeated(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, code: int
) -> None:
    made = api.add(JOB, "one")
    api.faults.refuse(code, times=3, text="" if code == 502 else None)
    assert await retrying(lambda: server.get(_ONE)) == made
    assert len(api.requests.all) == 4


@pytest.mark.parametrize("code", [400, 403, 409, 410, 422])
async def test_what_does_not_pass_is_raised_at_once(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, code: int
) -> None:
    api.faults.refuse(code)
    with pytest.raises(errors.ApiError):
        await retrying(lambda: server.get(_ONE))
    assert len(api.requests.all) == 1


async def test_cut_line_is_asked_again(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    body = {"apiVersion": JOB.version, "kind": "Job", "metadata": {"name": "one"}}
    api.faults.disconnect(is_done=True, verb="create")
    with pytest.raises(errors.ConflictError):
        await retrying(lambda: server.create(JOB.resource.at("default"), body))
    assert api.find(JOB, "one") is not None


async def test_server_is_given_the_time_that_it_asks_for(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    api.add(JOB, "one")
    api.faults.refuse(429, retry_after=20, times=2)
    await retrying(lambda: server.get(_ONE))
    assert [20 < slept < 21 for slept in time.slept] == [True, True]


async def test_waits_grow_and_are_never_equal(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    api.add(JOB, "one")
    api.faults.refuse(503, times=5)
    await retrying(lambda: server.get(_ONE))
    bounds = [(0.25, 0.5), (0.5, 1), (1, 2), (2, 4), (4, 8)]
    inside = [low <= slept < high for slept, (low, high) in zip(time.slept, bounds, strict=True)]
    assert all(inside), time.slept
    assert len({slept / high for slept, (_, high) in zip(time.slept, bounds, strict=True)}) == 5


async def test_patience_ends(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    api.faults.refuse(503, times=100)
    with pytest.raises(errors.UnreachableError):
        await retrying(lambda: server.get(_ONE))
    assert time.monotonic() <= 60
    assert len(api.requests.all) < 20


async def test_nobody_waits_for_longer_than_there_is_patience(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    api.faults.refuse(429, retry_after=3600)
    with pytest.raises(errors.BusyError):
        await retrying(lambda: server.get(_ONE))
    assert time.slept == []
