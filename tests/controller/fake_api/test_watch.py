"""Watches of the fake, as a client sees them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB


class _Watch:
    """One client's watch."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def next(self) -> tuple[str, str | None]:
        """Tell the next event, by type and name."""
        event = await self.event()
        return event["type"], event["object"].get("metadata", {}).get("name")

    async def event(self) -> Any:
        line = await self._answer.content.readline()
        assert line, "the watch is over"
        return json.loads(line)

    async def is_over(self) -> bool:
        return await self._answer.content.readline() == b""


@asynccontextmanager
async def _watching(api: FakeApi, since: str | None = None, **query: str) -> AsyncIterator[_Watch]:
    query |= {"watch": "true"} | ({} if since is None else {"resourceVersion": since})
    async with (
        aiohttp.ClientSession() as session,
        session.get(api.url + JOB.resource.at().path, params=query) as answer,
    ):
        yield _Watch(answer)


def _now(api: FakeApi) -> str:
    return str(api.storage.version)


async def test_watch_tells_what_happens(api: FakeApi) -> None:
    async with _watching(api, _now(api)) as watch:
        api.add(JOB, "one")
        api.edit(JOB, "one", spec={"priority": 1})
        api.remove(JOB, "one")
        events = [await watch.next() for _ in range(3)]
    assert events == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]


async def test_watch_tells_what_happened_since_its_version(api: FakeApi) -> None:
    api.add(JOB, "before")
    since = _now(api)
    api.add(JOB, "after")
    async with _watching(api, since) as watch:
        assert await watch.next() == ("ADDED", "after")


async def test_watch_without_a_version_begins_with_what_is_there(api: FakeApi) -> None:
    api.add(JOB, "one")
    async with _watching(api) as watch:
        assert await watch.next() == ("ADDED", "one")
        api.add(JOB, "two")
        assert await watch.next() == ("ADDED", "two")


async def test_watch_from_before_a_compaction_is_told_so(api: FakeApi) -> None:
    since = _now(api)
    api.add(JOB, "one")
    api.storage.compact()
    async with _watching(api, since) as watch:
        event = await watch.event()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert await watch.is_over()


async def test_what_leaves_a_selection_is_deleted_to_it(api: FakeApi) -> None:
    api.add(JOB, "one", metadata={"labels": {"a": "b"}})
    async with _watching(api, _now(api), labelSelector="a=b") as watch:
        api.edit(JOB, "one", metadata={"labels": {"a": "c"}})
        event = await watch.event()
        assert event["type"] == "DELETED"
        assert event["object"]["metadata"]["labels"] == {"a": "b"}
        assert event["object"]["metadata"]["resourceVersion"] == _now(api)
        api.edit(JOB, "one", metadata={"labels": {"a": "b"}})
        assert await watch.next() == ("ADDED", "one")


async def test_bookmark_tells_how_far_it_is(api: FakeApi) -> None:
    async with _watching(api, _now(api), allowWatchBookmarks="true") as watch:
        api.add(JOB, "one")
        await watch.next()
        await api.streams.opened(JOB)
        api.streams.bookmark(JOB)
        event = await watch.event()
    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["resourceVersion"] == _now(api)


async def test_watch_ends_when_its_time_is_over(api: FakeApi) -> None:
    async with _watching(api, _now(api), timeoutSeconds="0.01") as watch:
        assert await watch.is_over()


async def test_watch_that_is_held_tells_late(api: FakeApi) -> None:
    async with _watching(api, _now(api)) as watch:
        api.streams.hold(JOB)
        api.add(JOB, "one")
        waiting = asyncio.create_task(watch.next())
        async with _watching(api, "1", labelSelector="never=true"):
            assert not waiting.done()
        api.streams.let_go(JOB)
        assert await waiting == ("ADDED", "one")


async def test_events_are_lost_and_repeated_as_wanted(api: FakeApi) -> None:
    api.streams.lose("ADDED", "lost")
    api.streams.repeat("ADDED", "twice")
    async with _watching(api, _now(api)) as watch:
        for name in ("lost", "twice", "once"):
            api.add(JOB, name)
        events = [await watch.next() for _ in range(3)]
    assert events == [("ADDED", "twice"), ("ADDED", "twice"), ("ADDED", "once")]


async def test_watch_fails_with_the_code_that_is_wanted(api: FakeApi) -> None:
    async with _watching(api, _now(api)) as watch:
        await api.streams.opened(JOB)
        api.streams.fail(JOB, 500)
        event = await watch.event()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
        assert await watch.is_over()


async def test_watch_that_is_cut_is_a_broken_line(api: FakeApi) -> None:
    async with _watching(api, _now(api)) as watch:
        await api.streams.opened(JOB)
        api.streams.cut(JOB)
        with pytest.raises(aiohttp.ClientError):
            await watch.event()


async def test_watch_that_is_refused_is_an_answer(api: FakeApi) -> None:
    api.faults.refuse(410, verb="watch")
    async with aiohttp.ClientSession() as session:
        answer = await session.get(api.url + JOB.resource.at().path, params={"watch": "1"})
        assert answer.status == 410
