"""Writes to the fake API server; a real server does the same."""

from typing import Any

import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB, LEASE
from tests.controller.fake_api.server_side_apply import Applied
from tests.controller.fake_api.status_errors import StatusError
from workron_controller.kube import errors
from workron_controller.kube.client import ApiClient

_ONE = JOB.resource.at("default", "one")
_STATUS = JOB.resource.at("default", "one", "status")


def _counts(body: dict[str, Any]) -> tuple[int, int]:
    return body["metadata"]["generation"], int(body["metadata"]["resourceVersion"])


async def test_status_is_ignored_when_an_object_is_created(api: FakeApi) -> None:
    assert "status" not in api.add(JOB, "one", status={"phase": "Succeeded"})


async def test_generation_rises_when_the_spec_changes(api: FakeApi, server: ApiClient) -> None:
    generation, version = _counts(api.add(JOB, "one"))
    change = {"spec": {"priority": 1}, "status": {"phase": "x"}}
    changed = await server.patch(_ONE, change)
    assert _counts(changed) == (generation + 1, version + 1)
    assert "status" not in changed


async def test_generation_stays_when_a_label_changes(api: FakeApi, server: ApiClient) -> None:
    generation, version = _counts(api.add(JOB, "one"))
    changed = await server.patch(_ONE, {"metadata": {"labels": {"a": "b"}}})
    assert _counts(changed) == (generation, version + 1)


async def test_patch_of_the_status_changes_nothing_else(api: FakeApi, server: ApiClient) -> None:
    generation, version = _counts(api.add(JOB, "one", spec={"priority": 1}))
    change = {"metadata": {"labels": {"a": "b"}}, "spec": {"priority": 2}, "status": {"phase": "x"}}
    changed = await server.patch(_STATUS, change)
    assert _counts(changed) == (generation, version + 1)
    assert (changed["spec"], changed["status"]) == ({"priority": 1}, {"phase": "x"})
    assert "labels" not in changed["metadata"]


async def test_version_stays_when_nothing_changes(api: FakeApi, server: ApiClient) -> None:
    created = api.add(JOB, "one", spec={"priority": 1})
    assert await server.patch(_ONE, {"spec": {"priority": 1}}) == created
    assert api.storage.since(int(created["metadata"]["resourceVersion"])) == []


async def test_patch_of_the_status_is_refused_when_the_kind_has_no_such_subresource(
    api: FakeApi, server: ApiClient
) -> None:
    api.add(LEASE, "one")
    with pytest.raises(errors.KindNotServedError):
        await server.patch(LEASE.resource.at("default", "one", "status"), {})


async def test_generated_names_differ(server: ApiClient) -> None:
    body = {"apiVersion": JOB.version, "kind": "Job", "metadata": {"generateName": "job-"}}
    created = [await server.create(JOB.resource.at("default"), body) for _ in range(3)]
    names = {one["metadata"]["name"] for one in created}
    assert len(names) == 3
    assert all(name.startswith("job-") for name in names)


async def test_deleted_object_exists_until_its_finalizer_is_removed(
    api: FakeApi, server: ApiClient
) -> None:
    created = api.add(JOB, "one", metadata={"finalizers": ["a/b"]})
    await server.delete(_ONE, created["metadata"]["uid"])
    found = api.find(JOB, "one")
    assert found is not None
    assert "deletionTimestamp" in found["metadata"]
    api.edit(JOB, "one", metadata={"finalizers": None})
    assert api.find(JOB, "one") is None


async def test_uid_differs_when_an_object_is_created_again(api: FakeApi) -> None:
    before = api.add(JOB, "one")
    api.remove(JOB, "one")
    assert api.add(JOB, "one")["metadata"]["uid"] != before["metadata"]["uid"]


async def test_apply_conflicts_with_fields_of_another_manager_unless_forced(api: FakeApi) -> None:
    body = {"apiVersion": JOB.version, "kind": "Job", "metadata": {"name": "one"}}
    key = (JOB, "default", "one")
    owners = api._owners
    owners.apply(key, Applied("a", "", False, {**body, "spec": {"x": 1, "y": 1}}))
    owners.apply(key, Applied("b", "", False, {**body, "spec": {"y": 1, "z": 1}}))
    with pytest.raises(StatusError, match=r"conflict at spec\.x"):
        owners.apply(key, Applied("b", "", False, {**body, "spec": {"x": 2}}))
    owners.apply(key, Applied("b", "", True, {**body, "spec": {"x": 2}}))
    # `b` has dropped `y` and `z`; `a` still owns `y`.
    assert (api.find(JOB, "one") or {})["spec"] == {"x": 2, "y": 1}
