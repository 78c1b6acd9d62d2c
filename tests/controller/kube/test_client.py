"""The requests of the client."""

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


async def test_writes_name_our_field_manager(api: FakeApi, server: ApiClient) -> None:
    await server.create(_JOBS.at("default"), _job("one"))
    await server.patch(_ONE, {"spec": {"priority": 3}})
    await server.apply(_ONE, _job("one"))
    assert [request.query["fieldManager"] for request in api.requests.writes] == [
        "workron-controller"
    ] * 3


async def test_writes_are_counted_by_outcome(api: FakeApi, server: ApiClient) -> None:
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


async def test_create_is_a_conflict_when_the_name_exists(api: FakeApi, server: ApiClient) -> None:
    api.add(JOB, "one")
    with pytest.raises(errors.ConflictError, match="already exists"):
        await server.create(_JOBS.at("default"), _job("one"))


async def test_patch_is_a_conflict_when_the_version_is_old(api: FakeApi, server: ApiClient) -> None:
    version = api.add(JOB, "one")["metadata"]["resourceVersion"]
    api.edit(JOB, "one", spec={"priority": 1})
    with pytest.raises(errors.ConflictError):
        await server.patch(_STATUS, {"metadata": {"resourceVersion": version}, "status": {}})


async def test_patch_is_a_conflict_when_the_uid_is_another_one(
    api: FakeApi, server: ApiClient
) -> None:
    api.add(JOB, "one")
    with pytest.raises(errors.ConflictError, match="another object has this name now"):
        await server.patch(
            _ONE, {"metadata": {"uid": "of-an-earlier-object"}, "spec": {"priority": 1}}
        )


async def test_status_is_not_written_when_the_uid_is_another_one(
    api: FakeApi, server: ApiClient
) -> None:
    api.add(JOB, "one")
    with pytest.raises(errors.ConflictError, match="another object has this name now"):
        await server.replace_status(_STATUS, "of-an-earlier-object", {"phase": "Running"})
    assert "status" not in (api.find(JOB, "one") or {})


async def test_uid_in_a_merge_patch_does_not_guard_a_status(
    api: FakeApi, server: ApiClient
) -> None:
    """The reason for `replace_status`; the fake does what a real server does."""
    api.add(JOB, "one")
    await server.patch(
        _STATUS, {"metadata": {"uid": "of-an-earlier-object"}, "status": {"phase": "x"}}
    )
    assert (api.find(JOB, "one") or {})["status"] == {"phase": "x"}


async def test_status_is_replaced_as_a_whole(api: FakeApi, server: ApiClient) -> None:
    uid = api.add(JOB, "one")["metadata"]["uid"]
    await server.replace_status(_STATUS, uid, {"phase": "Running", "worker": "w"})
    await server.replace_status(_STATUS, uid, {"phase": "Succeeded"})
    found = api.find(JOB, "one") or {}
    assert found["status"] == {"phase": "Succeeded"}
    assert found["metadata"]["generation"] == 1


async def test_object_is_not_deleted_when_the_uid_is_another_one(
    api: FakeApi, server: ApiClient
) -> None:
    api.add(JOB, "one")
    with pytest.raises(errors.ConflictError):
        await server.delete(_ONE, "of-an-earlier-object")
    assert api.find(JOB, "one") is not None


async def test_apply_removes_the_fields_that_are_not_applied_any_more(
    api: FakeApi, server: ApiClient
) -> None:
    place = SECRET.resource.at("default", "token")
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}
    await server.apply(place, {**body, "data": {"a": "MQ==", "b": "Mg=="}})
    api.edit(SECRET, "token", data={"theirs": "Mw=="})
    applied = await server.apply(place, {**body, "data": {"a": "NA=="}})
    assert applied["data"] == {"a": "NA==", "theirs": "Mw=="}


async def test_request_times_out_when_the_server_does_not_answer(
    api: FakeApi, access: ApiAccess
) -> None:
    api.faults.leave_unanswered()
    async with ApiClient(access, seconds=0.05) as server:
        with pytest.raises(errors.UnreachableError, match=r"no answer within 0\.05 s"):
            await server.get(_ONE)


@pytest.mark.parametrize("is_done", [True, False])
async def test_error_is_transient_when_the_connection_is_lost(
    api: FakeApi, server: ApiClient, is_done: bool
) -> None:
    api.faults.disconnect(is_done=is_done, verb="create")
    with pytest.raises(errors.UnreachableError, match="does not answer"):
        await server.create(_JOBS.at("default"), _job("one"))
    assert (api.find(JOB, "one") is not None) is is_done


async def test_error_names_the_server_when_it_does_not_listen(
    api: FakeApi, server: ApiClient
) -> None:
    await api.__aexit__()
    with pytest.raises(errors.UnreachableError, match=f"{api.url} does not answer"):
        await server.get(_ONE)


async def test_requests_in_flight_are_bounded(api: FakeApi, access: ApiAccess) -> None:
    api.add(JOB, "one")
    gate = asyncio.Event()
    api.faults.hold(gate, verb="get", times=9)
    async with ApiClient(access, in_flight=2) as server:
        requests = [asyncio.create_task(server.get(_ONE)) for _ in range(9)]
        await api.requests.wait_for(2, verb="get")
        # Without a bound, more of them would arrive during a round trip of another client.
        async with ApiClient(access) as other:
            await other.list_page(_JOBS.at(), {})
        assert len(api.requests.matching(verb="get")) == 2
        gate.set()
        await asyncio.gather(*requests)
    assert len(api.requests.matching(verb="get")) == 9
