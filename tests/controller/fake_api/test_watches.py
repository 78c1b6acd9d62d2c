"""Watches of the fake API server."""

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
    """The watch of one client."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def next(self) -> tuple[str, str | None]:
        """Return type and name of the next event."""
        event = await self.event()
        return event["type"], event["object"].get("metadata", {}).get("name")

    async def event(self) -> Any:
        line = await self._answer.content.readline()
        assert line, "the watch has ended"
        return json.loads(line)

    async def has_ended(self) -> bool:
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


async def test_watch_sends_changes(api: FakeApi) -> None:
    async with _watching(api, _now(api)) as watch:
        api.add(JOB, "one")
        api.edit(JOB, "one", spec={"priority": 1})
        api.remove(JOB, "one")
        events = [await watch.next() for _ in range(3)]
    assert events == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]


async def test_watch_sends_changes_since_its_version(api: FakeApi) -> None:
    api.add(JOB, "before")
    since = _now(api)
    api.add(JOB, "after")
    async with _watching(api, since) as watch:
        assert await watch.next() == ("ADDED", "after")


async def test_watch_starts_with_existing_objects_when_it_has_no_version(api: FakeApi) -> None:
    api.add(JOB, "one")
    async with _watching(api) as watch:
        assert await watch.next() == ("ADDED", "one")
        api.add(JOB, "two")
        assert await watch.next() == ("ADDED", "two")


async def test_watch_gets_an_error_when_its_version_was_compacted(api: FakeApi) -> None:
    since = _now(api)
    api.add(JOB, "one")
    api.storage.compact()
    async with _watching(api, since) as watch:
        event = await watch.event()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert await watch.has_ended()


async def test_watch_sends_a_deletion_when_an_object_leaves_its_selection(api: FakeApi) -> None:
    api.add(JOB, "one", metadata={"labels": {"a": "b"}})
    async with _watching(api, _now(api), labelSelector="a=b") as watch:
        api.edit(JOB, "one", metadata={"labels": {"a": "c"}})
        event = await watch.event()
        assert event["type"] == "DELETED"
        assert event["object"]["metadata"]["labels"] == {"a": "b"}
        assert event["object"]["metadata"]["resourceVersion"] == _now(api)
        api.edit(JOB, "one", metadata={"labels": {"a": "b"}})
        assert await watch.next() == ("ADDED", "one")


async def test_bookmark_has_the_current_version(api: FakeApi) -> None:
    async with _watching(api, _now(api), allowWatchBookmarks="true") as watch:
        api.add(JOB, "one")
        await watch.next()
        await api.watches.wait_until_open(JOB)
        api.watches.bookmark(JOB)
        event = await watch.event()
    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["resourceVersion"] == _now(api)


async def test_watch_ends_when_its_timeout_has_passed(api: FakeApi) -> None:
    async with _watching(api, _now(api), timeoutSeconds="0.01") as watch:
        assert await watch.has_ended()


async def test_watch_sends_late_events_when_it_was_paused(api: FakeApi) -> None:
    async with _watching(api, _now(api)) as watch:
        api.watches.pause(JOB)
        api.add(JOB, "one")
        waiting = asyncio.create_task(watch.next())
        async with _watching(api, "1", labelSelector="never=true"):
            assert not waiting.done()
        api.watches.resume(JOB)
        assert await waiting == ("ADDED", "one")


async def test_events_are_dropped_and_duplicated(api: FakeApi) -> None:
    api.watches.drop("ADDED", "dropped")
    api.watches.duplicate("ADDED", "twice")
    async with _watching(api, _now(api)) as watch:
        for name in ("dropped", "twice", "once"):
            api.add(JOB, name)
        events = [await watch.next() for _ in range(3)]
    assert events == [("ADDED", "twice"), ("ADDED", "twice"), ("ADDED", "once")]


async def test_watch_fails_with_the_given_code(api: FakeApi) -> None:
    async with _watching(api, _now(api)) as watch:
        await api.watches.wait_until_open(JOB)
        api.watches.fail(JOB, 500)
        event = await watch.event()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
        assert await watch.has_ended()


async def test_connection_breaks_when_a_watch_is_cut(api: FakeApi) -> None:
    async with _watching(api, _now(api)) as watch:
        await api.watches.wait_until_open(JOB)
        api.watches.cut(JOB)
        with pytest.raises(aiohttp.ClientError):
            await watch.event()


async def test_watch_is_answered_with_an_error_when_it_is_refused(api: FakeApi) -> None:
    api.faults.refuse(410, verb="watch")
    async with aiohttp.ClientSession() as session:
        answer = await session.get(api.url + JOB.resource.at().path, params={"watch": "1"})
        assert answer.status == 410
