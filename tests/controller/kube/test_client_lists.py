"""Lists are read in pages, and start again when they expire."""

import asyncio

import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB, POD
from tests.controller.manual_clock import ManualClock
from workron_controller.kube import client, errors
from workron_controller.kube.client import ApiClient, ListPage, RetryingCalls

_JOBS = JOB.resource.at("default")


def _names(pages: list[ListPage]) -> list[str]:
    return [item["metadata"]["name"] for page in pages for item in page.items]


def _fill(api: FakeApi, count: int) -> list[str]:
    return [api.add(JOB, f"job-{number:03}")["metadata"]["name"] for number in range(count)]


async def test_list_is_read_in_pages(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    names = _fill(api, 7)
    pages = [page async for page in client.list_pages(server, retrying, _JOBS, page_size=3)]
    assert _names(pages) == names
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert [page.is_first for page in pages] == [True, False, False]


async def test_page_has_five_hundred_objects(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    [page async for page in client.list_pages(server, retrying, _JOBS)]
    [request] = api.requests.matching(verb="list")
    assert request.query == {"limit": "500"}


async def test_empty_list_is_one_page(server: ApiClient, retrying: RetryingCalls) -> None:
    [page] = [page async for page in client.list_pages(server, retrying, _JOBS)]
    assert (page.items, page.is_first) == ([], True)


async def test_pages_are_of_one_moment(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    names = _fill(api, 4)
    api.faults.run_before(lambda: api.remove(JOB, "job-003"), verb="list", after=1)
    assert (
        _names([page async for page in client.list_pages(server, retrying, _JOBS, page_size=2)])
        == names
    )


async def test_list_starts_again_with_a_first_page_when_it_expires(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    names = _fill(api, 4)

    def forget() -> None:
        api.remove(JOB, names[0])
        api.storage.compact()

    api.faults.run_before(forget, verb="list", after=1)
    pages = [page async for page in client.list_pages(server, retrying, _JOBS, page_size=2)]
    assert [page.is_first for page in pages] == [True, True, False]
    restarted = next(at for at in (2, 1, 0) if pages[at].is_first)
    assert _names(pages[restarted:]) == names[1:]


async def test_error_is_raised_when_the_list_expires_too_often(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    _fill(api, 4)
    api.faults.refuse(410, times=9, verb="list", is_continued=True)
    with pytest.raises(errors.ExpiredError):
        [page async for page in client.list_pages(server, retrying, _JOBS, page_size=2)]
    assert len(api.requests.matching(verb="list")) == 6


async def test_list_has_the_objects_with_the_labels(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    api.add(POD, "one", metadata={"labels": {"app": "workron"}})
    api.add(POD, "other")
    found = client.list_pages(server, retrying, POD.resource.at(), "app=workron")
    assert _names([page async for page in found]) == ["one"]


async def test_page_is_retried_when_the_server_is_busy(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    names = _fill(api, 4)
    api.faults.refuse(429, retry_after=1, verb="list", is_continued=True)

    async def read() -> list[ListPage]:
        return [page async for page in client.list_pages(server, retrying, _JOBS, page_size=2)]

    reading = asyncio.create_task(read())
    await time.wait_for_sleepers(1)
    time.advance(2)
    found = await reading
    assert _names(found) == names
    assert [page.is_first for page in found] == [True, False]
