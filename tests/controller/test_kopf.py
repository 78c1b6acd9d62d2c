"""Kopf as the controller uses it, against the fake API server."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import kopf
import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB
from tests.controller.fake_api.notifier import Notifier
from workron_controller.kube.auth import ApiAccess


class _Handler:
    """Records the events of a handler; `operator` runs it."""

    def __init__(self) -> None:
        self.operator: asyncio.Task[None] | None = None
        self.received: list[tuple[str | None, str]] = []
        self._notifier = Notifier()

    def record_event(self, type_: str | None, name: str) -> None:
        self.received.append((type_, name))
        self._notifier.notify()

    async def wait_for(self, *events: tuple[str | None, str]) -> None:
        """Wait until it has received these events, in any order."""
        wanted = Counter(events)
        await self._notifier.wait_until(lambda: wanted <= Counter(self.received))


def _settings(silence: float) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.watching.chunk_size = 500
    settings.watching.server_timeout = 600
    settings.watching.reconnect_backoff = 0.01
    settings.watching.inactivity_timeout = silence
    settings.queueing.idle_timeout = 0.5
    settings.networking.error_backoffs = [0.01] * 5
    return settings


@asynccontextmanager
async def _watching(access: ApiAccess, silence: float = 70) -> AsyncIterator[_Handler]:
    """Run Kopf with one handler."""
    handler, registry, stop = _Handler(), kopf.OperatorRegistry(), asyncio.Event()

    async def login(**_: Any) -> kopf.ConnectionInfo:
        return (await access.refresh()).kopf_connection

    async def on_event(event: Any, name: str | None, **_: Any) -> None:
        handler.record_event(event["type"], name or "")

    kopf.on.login(registry=registry)(login)
    kopf.on.event("workron.dev", "v1alpha1", "workronjobs", registry=registry)(on_event)
    operator = kopf.operator(
        registry=registry, settings=_settings(silence), clusterwide=True, stop_flag=stop
    )
    handler.operator = asyncio.create_task(operator)
    try:
        yield handler
    finally:
        stop.set()
        await asyncio.wait([handler.operator])


async def test_kopf_reports_existing_new_and_deleted_objects(
    api: FakeApi, access: ApiAccess
) -> None:
    api.add(JOB, "old")
    async with _watching(access) as handler:
        await handler.wait_for((None, "old"))
        await api.watches.wait_until_open(JOB)
        api.add(JOB, "new", "elsewhere")
        api.edit(JOB, "old", spec={"priority": 1})
        api.remove(JOB, "old")
        await handler.wait_for(("ADDED", "new"), ("MODIFIED", "old"), ("DELETED", "old"))


async def test_kopf_writes_nothing(api: FakeApi, access: ApiAccess) -> None:
    api.add(JOB, "old")
    async with _watching(access) as handler:
        await api.watches.wait_until_open(JOB)
        api.add(JOB, "new")
        api.edit(JOB, "old", status={"phase": "Running"})
        api.remove(JOB, "old")
        await handler.wait_for(("ADDED", "new"), ("MODIFIED", "old"), ("DELETED", "old"))
    assert api.requests.writes == []


async def test_kopf_lists_in_pages_and_watches_from_there(api: FakeApi, access: ApiAccess) -> None:
    for number in range(501):
        api.add(JOB, f"job-{number:03}")
    async with _watching(access) as handler:
        await handler.wait_for(*[(None, f"job-{number:03}") for number in range(501)])
        await api.watches.wait_until_open(JOB)
    lists = api.requests.matching(verb="list", plural="workronjobs")
    assert [request.query["limit"] for request in lists] == ["500", "500"]
    [watch] = api.requests.matching(verb="watch", plural="workronjobs")
    assert watch.query["timeoutSeconds"] == "600"
    assert watch.query["resourceVersion"] == str(api.storage.version)


async def test_kopf_logs_in_again_when_the_token_is_refused(
    api: FakeApi, access: ApiAccess, tmp_path: Any
) -> None:
    api.add(JOB, "old")
    api.require_token("first")
    api.kubeconfig(tmp_path)
    async with _watching(access) as handler:
        await handler.wait_for((None, "old"))
        await api.watches.wait_until_open(JOB)
        api.require_token("second")
        api.kubeconfig(tmp_path)
        api.watches.end(JOB)
        await api.requests.wait_for(1, verb="watch", code=401)
        await api.watches.wait_until_open(JOB)
        api.add(JOB, "new")
        await handler.wait_for(("ADDED", "new"))


async def test_deletion_is_reported_when_it_happens_between_list_and_watch(
    api: FakeApi, access: ApiAccess
) -> None:
    api.add(JOB, "old")
    api.faults.run_before(lambda: api.remove(JOB, "old"), verb="watch")
    async with _watching(access) as handler:
        await handler.wait_for((None, "old"), ("DELETED", "old"))


async def test_deletion_is_never_reported_when_the_server_has_forgotten_it(
    api: FakeApi, access: ApiAccess
) -> None:
    """The reason why the controller resyncs."""

    def forget() -> None:
        api.remove(JOB, "old")
        api.storage.compact()

    api.add(JOB, "old")
    api.add(JOB, "survivor")
    api.faults.run_before(forget, verb="watch")
    async with _watching(access) as handler:
        await handler.wait_for((None, "survivor"), (None, "survivor"))
        await api.watches.wait_until_open(JOB)
        api.add(JOB, "new")
        await handler.wait_for(("ADDED", "new"))
    assert ("DELETED", "old") not in handler.received


async def test_watch_continues_where_it_was_when_the_connection_is_lost(
    api: FakeApi, access: ApiAccess
) -> None:
    async with _watching(access) as handler:
        await api.watches.wait_until_open(JOB)
        api.watches.cut(JOB)
        api.add(JOB, "new")
        await handler.wait_for(("ADDED", "new"))
        await api.watches.wait_until_open(JOB)
    assert handler.received == [("ADDED", "new")]
    assert len(api.requests.matching(verb="list", plural="workronjobs")) == 1


async def test_watch_is_replaced_when_it_sends_nothing(api: FakeApi, access: ApiAccess) -> None:
    async with _watching(access, silence=0.2) as handler:
        await api.watches.wait_until_open(JOB)
        api.watches.pause(JOB)
        api.add(JOB, "new")
        await api.requests.wait_for(2, verb="watch")
        assert handler.received == []
        api.watches.resume(JOB)
        await handler.wait_for(("ADDED", "new"))


async def test_kopf_ends_when_a_watch_fails_with_an_unknown_error(
    api: FakeApi, access: ApiAccess
) -> None:
    """The reason why the informer restarts it."""
    async with _watching(access) as handler:
        await api.watches.wait_until_open(JOB)
        api.watches.fail(JOB, 500)
        assert handler.operator is not None
        with pytest.raises(Exception, match="Error in the watch-stream"):
            await handler.operator
