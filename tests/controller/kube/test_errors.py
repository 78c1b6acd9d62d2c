"""Errors of the API client by the response of the server."""

import pytest

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB
from workron_controller.kube import errors
from workron_controller.kube.client import ApiClient

_ONE = JOB.resource.at("default", "one")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, errors.InvalidError),
        (401, errors.UnauthorizedError),
        (403, errors.ForbiddenError),
        (409, errors.ConflictError),
        (410, errors.ExpiredError),
        (422, errors.InvalidError),
        (429, errors.BusyError),
        (500, errors.UnreachableError),
        (503, errors.UnreachableError),
    ],
)
async def test_status_code_determines_the_error(
    api: FakeApi, server: ApiClient, code: int, kind: type[errors.ApiError]
) -> None:
    api.faults.refuse(code, times=2)
    with pytest.raises(kind, match=rf"get workronjobs.workron.dev default/one: {code}"):
        await server.get(_ONE)


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_error_is_transient_with_the_pause_that_the_server_asks_for(
    api: FakeApi, server: ApiClient, code: int
) -> None:
    api.faults.refuse(code, retry_after=7)
    with pytest.raises(errors.TransientApiError) as caught:
        await server.get(_ONE)
    assert caught.value.after == 7


async def test_transient_error_has_no_pause_when_the_server_asks_for_none(
    api: FakeApi, server: ApiClient
) -> None:
    api.faults.refuse(429)
    with pytest.raises(errors.BusyError) as caught:
        await server.get(_ONE)
    assert caught.value.after is None


async def test_missing_object_and_missing_resource_are_different_errors(
    api: FakeApi, server: ApiClient
) -> None:
    with pytest.raises(errors.ObjectNotFoundError):
        await server.get(_ONE)
    api.served.remove(JOB)
    with pytest.raises(errors.KindNotServedError, match="install its CustomResourceDefinition"):
        await server.get(_ONE)


async def test_error_names_the_missing_permission_when_it_is_forbidden(
    api: FakeApi, server: ApiClient
) -> None:
    api.faults.refuse(403, times=2)
    with pytest.raises(errors.ForbiddenError) as caught:
        await server.patch(JOB.resource.at("default", "one", "status"), {})
    assert str(caught.value).endswith(
        "to allow it, add the verb patch on workronjobs/status"
        ' of API group "workron.dev" to a Role in namespace default'
    )
    with pytest.raises(errors.ForbiddenError, match="to a ClusterRole"):
        await server.list_page(JOB.resource.at(), {})


async def test_message_of_a_proxy_is_repeated_and_shortened(
    api: FakeApi, server: ApiClient
) -> None:
    api.faults.refuse(502, text="<html>" + "no upstream " * 1000)
    with pytest.raises(errors.UnreachableError, match="502 <html>no upstream") as caught:
        await server.get(_ONE)
    assert len(str(caught.value)) < 600


async def test_error_names_a_proxy_when_the_response_is_not_json(
    api: FakeApi, server: ApiClient
) -> None:
    api.faults.refuse(200, text="<html>sign in</html>")
    with pytest.raises(
        errors.UnreachableError, match="a proxy between the controller and the API server"
    ):
        await server.get(_ONE)


async def test_message_of_the_server_is_repeated_when_the_object_is_invalid(
    server: ApiClient,
) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}}
    with pytest.raises(errors.InvalidError, match="the object is not a Job of"):
        await server.create(JOB.resource.at("default"), body)
