"""What writes do to the fake's objects, each as a real server was seen to do it."""

from typing import Any

import pytest

from tests.controller.fake_api.applying import Applied
from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB, LEASE
from tests.controller.fake_api.refused import RefusedError
from workron_controller.kube import errors
from workron_controller.kube.client import ApiClient

_ONE = JOB.resource.at("default", "one")
_STATUS = JOB.resource.at("default", "one", "status")


def _counts(body: dict[str, Any]) -> tuple[int, int]:
    return body["metadata"]["generation"], int(body["metadata"]["resourceVersion"])


async def test_status_is_not_taken_with_a_new_object(api: FakeApi) -> None:
    assert "status" not in api.add(JOB, "one", status={"phase": "Succeeded"})


async def test_change_of_the_spec_counts_as_a_generation(api: FakeApi, server: ApiClient) -> None:
    generation, version = _counts(api.add(JOB, "one"))
    change = {"spec": {"priority": 1}, "status": {"phase": "x"}}
    changed = await server.patch(_ONE, change)
    assert _counts(changed) == (generation + 1, version + 1)
    assert "status" not in changed


async def test_change_of_a_label_is_no_generation(api: FakeApi, server: ApiClient) -> None:
    generation, version = _counts(api.add(JOB, "one"))
    changed = await server.patch(_ONE, {"metadata": {"labels": {"a": "b"}}})
    assert _counts(changed) == (generation, version + 1)


async def test_patch_of_the_status_touches_nothing_else(api: FakeApi, server: ApiClient) -> None:
    generation, version = _counts(api.add(JOB, "one", spec={"priority": 1}))
    change = {"metadata": {"labels": {"a": "b"}}, "spec": {"priority": 2}, "status": {"phase": "x"}}
    changed = await server.patch(_STATUS, change)
    assert _counts(changed) == (generation, version + 1)
    assert (changed["spec"], changed["status"]) == ({"priority": 1}, {"phase": "x"})
    assert "labels" not in changed["metadata"]


async def test_change_of_nothing_is_no_version(api: FakeApi, server: ApiClient) -> None:
    made = api.add(JOB, "one", spec={"priority": 1})
    assert await server.patch(_ONE, {"spec": {"priority": 1}}) == made
    assert api.storage.since(int(made["metadata"]["resourceVersion"])) == []


async def test_kind_without_a_status_of_its_own_has_none_to_patch(
    api: FakeApi, server: ApiClient
) -> None:
    api.add(LEASE, "one")
    with pytest.raises(errors.KindNotServedError):
        await server.patch(LEASE.resource.at("default", "one", "status"), {})


async def test_generated_names_differ(server: ApiClient) -> None:
    body = {"apiVersion": JOB.version, "kind": "Job", "metadata": {"generateName": "job-"}}
    made = [await server.create(JOB.resource.at("default"), body) for _ in range(3)]
    names = {one["metadata"]["name"] for one in made}
    assert len(names) == 3
    assert all(name.startswith("job-") for name in names)


async def test_finalizer_holds_an_object_until_it_is_taken_off(
    api: FakeApi, server: ApiClient
) -> None:
    made = api.add(JOB, "one", metadata={"finalizers": ["a/b"]})
    await server.delete(_ONE, made["metadata"]["uid"])
    held = api.find(JOB, "one")
    assert held is not None
    assert "deletionTimestamp" in held["metadata"]
    api.edit(JOB, "one", metadata={"finalizers": None})
    assert api.find(JOB, "one") is None


async def test_namesake_has_another_uid(api: FakeApi) -> None:
    before = api.add(JOB, "one")
    api.remove(JOB, "one")
    assert api.add(JOB, "one")["metadata"]["uid"] != before["metadata"]["uid"]


async def test_two_who_apply_do_not_take_each_others_fields_unless_forced(api: FakeApi) -> None:
    body = {"apiVersion": JOB.version, "kind": "Job", "metadata": {"name": "one"}}
    key = (JOB, "default", "one")
    owners = api._owners
    owners.apply(key, Applied("a", "", False, {**body, "spec": {"x": 1, "y": 1}}))
    owners.apply(key, Applied("b", "", False, {**body, "spec": {"y": 1, "z": 1}}))
    with pytest.raises(RefusedError, match=r"conflict at spec\.x"):
        owners.apply(key, Applied("b", "", False, {**body, "spec": {"x": 2}}))
    owners.apply(key, Applied("b", "", True, {**body, "spec": {"x": 2}}))
    # `b` says no more of `y`, but `a` still does; of `z` nobody does.
    assert (api.find(JOB, "one") or {})["spec"] == {"x": 2, "y": 1}
