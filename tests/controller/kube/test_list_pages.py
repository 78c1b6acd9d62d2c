"""Lists, in parts, and whole or void."""

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


async def test_list_is_read_in_parts(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    names = _fill(api, 7)
    pages = [page async for page in client.list_pages(server, retrying, _JOBS, page_size=3)]
    assert _names(pages) == names
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert [page.is_first for page in pages] == [True, False, False]


async def test_five_hundred_are_asked_for_at_a_time(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    [page async for page in client.list_pages(server, retrying, _JOBS)]
    [asked] = api.requests.matching(verb="list")
    assert asked.query == {"limit": "500"}


async def test_empty_list_is_one_page(server: ApiClient, retrying: RetryingCalls) -> None:
    [page] = [page async for page in client.list_pages(server, retrying, _JOBS)]
    assert (page.items, page.is_first) == ([], True)


async def test_list_is_of_one_moment(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    names = _fill(api, 4)
    api.faults.run_before(lambda: api.remove(JOB, "job-003"), verb="list", after=1)
    assert (
        _names([page async for page in client.list_pages(server, retrying, _JOBS, page_size=2)])
        == names
    )


async def test_list_that_expires_begins_anew_and_says_so(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    names = _fill(api, 4)

    def forget() -> None:
        api.remove(JOB, names[0])
        api.storage.compact()

    api.faults.run_before(forget, verb="list", after=1)
    pages = [page async for page in client.list_pages(server, retrying, _JOBS, page_size=2)]
    assert [page.is_first for page in pages] == [True, True, False]
    begun_anew = next(at for at in (2, 1, 0) if pages[at].is_first)
    assert _names(pages[begun_anew:]) == names[1:]


async def test_list_that_always_expires_is_given_up(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    _fill(api, 4)
    api.faults.refuse(410, times=9, verb="list", is_continued=True)
    with pytest.raises(errors.ExpiredError):
        [page async for page in client.list_pages(server, retrying, _JOBS, page_size=2)]
    assert len(api.requests.matching(verb="list")) == 6


async def test_list_is_of_what_is_chosen(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls
) -> None:
    api.add(POD, "one", metadata={"labels": {"app": "workron"}})
    api.add(POD, "other")
    found = client.list_pages(server, retrying, POD.resource.at(), "app=workron")
    assert _names([page async for page in found]) == ["one"]


async def test_part_that_is_refused_for_now_is_asked_for_again(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    names = _fill(api, 4)
    api.faults.refuse(429, retry_after=1, verb="list", is_continued=True)

    async def read() -> list[ListPage]:
        return [page async for page in client.list_pages(server, retrying, _JOBS, page_size=2)]

    reading = asyncio.create_task(read())
    await time.asleep(1)
    time.turn(2)
    found = await reading
    assert _names(found) == names
    assert [page.is_first for page in found] == [True, False]
