"""The verbs, as the server is asked them."""

import asyncio

import pytest

from tests.controller import counters
from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB, SECRET
from workron_controller.kube import errors
from workron_controller.kube.auth import ApiAccess
from workron_controller.kube.client import ApiClient

_JOBS = JOB.resource
_ONE = _JOBS.at("default", "one")
_STATUS = _JOBS.at("default", "one", "status")


def _job(name: str) -> dict[str, object]:
    return {"apiVersion": JOB.version, "kind": "Job", "metadata": {"name": name}}


async def test_object_is_created_read_changed_and_deleted(api: FakeApi, server: ApiClient) -> None:
    made = await server.create(_JOBS.at("default"), {**_job("one"), "spec": {"command": "true"}})
    assert await server.get(_ONE) == made
    changed = await server.patch(_ONE, {"spec": {"priority": 3}})
    assert changed["spec"] == {"command": "true", "priority": 3}
    await server.delete(_ONE, made["metadata"]["uid"])
    assert api.find(JOB, "one") is None


async def test_what_is_written_is_known_as_ours(api: FakeApi, server: ApiClient) -> None:
    await server.create(_JOBS.at("default"), _job("one"))
    await server.patch(_ONE, {"spec": {"priority": 3}})
    await server.apply(_ONE, _job("one"))
    assert [asked.query["fieldManager"] for asked in api.requests.writes] == [
        "workron-controller"
    ] * 3


async def test_what_is_written_is_counted_by_what_came_of_it(
    api: FakeApi, server: ApiClient
) -> None:
    made = await server.create(_JOBS.at("default"), _job("one"))
    await server.get(_ONE)
    for _ in range(2):
        await server.replace_status(_STATUS, made["metadata"]["uid"], {"phase": "Running"})
    for code in (403, 503):
        api.faults.refuse(code, times=1, plural="workronjobs")
        with pytest.raises(errors.ApiError):
            await server.apply(_ONE, _job("one"))
        api.faults.clear()
    with pytest.raises(errors.ConflictError):
        await server.create(_JOBS.at("default"), _job("one"))
    await server.delete(_ONE, made["metadata"]["uid"])
    assert counters.by_labels(server.write_counter) == {
        ("create", "workronjobs", "Done"): 1,
        ("patch", "workronjobs/status", "Done"): 2,
        ("patch", "workronjobs", "Forbidden"): 1,
        ("patch", "workronjobs", "Unreachable"): 1,
        ("create", "workronjobs", "Conflict"): 1,
        ("delete", "workronjobs", "Done"): 1,
    }


async def test_name_that_is_taken_is_a_conflict(api: FakeApi, server: ApiClient) -> None:
    api.add(JOB, "one")
    with pytest.raises(errors.ConflictError, match="already exists"):
        await server.create(_JOBS.at("default"), _job("one"))


async def test_patch_of_an_old_version_is_a_conflict(api: FakeApi, server: ApiClient) -> None:
    version = api.add(JOB, "one")["metadata"]["resourceVersion"]
    api.edit(JOB, "one", spec={"priority": 1})
    with pytest.raises(errors.ConflictError):
        await server.patch(_STATUS, {"metadata": {"resourceVersion": version}, "status": {}})


async def test_patch_for_another_uid_is_a_conflict(api: FakeApi, server: ApiClient) -> None:
    api.add(JOB, "one")
    with pytest.raises(errors.ConflictError, match="another object has this name now"):
        await server.patch(_ONE, {"metadata": {"uid": "of-one-before"}, "spec": {"priority": 1}})


async def test_status_of_another_uid_is_not_written(api: FakeApi, server: ApiClient) -> None:
    api.add(JOB, "one")
    with pytest.raises(errors.ConflictError, match="another object has this name now"):
        await server.replace_status(_STATUS, "of-one-before", {"phase": "Running"})
    assert "status" not in (api.find(JOB, "one") or {})


async def test_uid_in_a_merge_patch_does_not_guard_a_status(
    api: FakeApi, server: ApiClient
) -> None:
    """So `set_status` is needed; the day a real server looks at it, it is not."""
    api.add(JOB, "one")
    await server.patch(_STATUS, {"metadata": {"uid": "of-one-before"}, "status": {"phase": "x"}})
    assert (api.find(JOB, "one") or {})["status"] == {"phase": "x"}


async def test_status_is_written_whole(api: FakeApi, server: ApiClient) -> None:
    uid = api.add(JOB, "one")["metadata"]["uid"]
    await server.replace_status(_STATUS, uid, {"phase": "Running", "worker": "w"})
    await server.replace_status(_STATUS, uid, {"phase": "Succeeded"})
    found = api.find(JOB, "one") or {}
    assert found["status"] == {"phase": "Succeeded"}
    assert found["metadata"]["generation"] == 1


async def test_another_uid_is_not_deleted(api: FakeApi, server: ApiClient) -> None:
    api.add(JOB, "one")
    with pytest.raises(errors.ConflictError):
        await server.delete(_ONE, "of-one-before")
    assert api.find(JOB, "one") is not None


async def test_applied_object_loses_what_is_applied_no_more(
    api: FakeApi, server: ApiClient
) -> None:
    place = SECRET.resource.at("default", "token")
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}
    await server.apply(place, {**body, "data": {"a": "MQ==", "b": "Mg=="}})
    api.edit(SECRET, "token", data={"theirs": "Mw=="})
    applied = await server.apply(place, {**body, "data": {"a": "NA=="}})
    assert applied["data"] == {"a": "NA==", "theirs": "Mw=="}


async def test_silence_ends_with_a_timeout(api: FakeApi, access: ApiAccess) -> None:
    api.faults.leave_unanswered()
    async with ApiClient(access, seconds=0.05) as server:
        with pytest.raises(errors.UnreachableError, match=r"no answer within 0\.05 s"):
            await server.get(_ONE)


@pytest.mark.parametrize("is_done", [True, False])
async def test_cut_line_is_no_answer(api: FakeApi, server: ApiClient, is_done: bool) -> None:
    api.faults.disconnect(is_done=is_done, verb="create")
    with pytest.raises(errors.UnreachableError, match="does not answer"):
        await server.create(_JOBS.at("default"), _job("one"))
    assert (api.find(JOB, "one") is not None) is is_done


async def test_server_that_is_not_there_is_named(api: FakeApi, server: ApiClient) -> None:
    await api.__aexit__()
    with pytest.raises(errors.UnreachableError, match=f"{api.url} does not answer"):
        await server.get(_ONE)


async def test_requests_in_flight_are_bounded(api: FakeApi, access: ApiAccess) -> None:
    api.add(JOB, "one")
    going = asyncio.Event()
    api.faults.hold(going, verb="get", times=9)
    async with ApiClient(access, in_flight=2) as server:
        asking = [asyncio.create_task(server.get(_ONE)) for _ in range(9)]
        await api.requests.wait_for(2, verb="get")
        # Were there no bound, one round trip on other connections would bring more of them.
        async with ApiClient(access) as other:
            await other.list_page(_JOBS.at(), {})
        assert len(api.requests.matching(verb="get")) == 2
        going.set()
        await asyncio.gather(*asking)
    assert len(api.requests.matching(verb="get")) == 9
