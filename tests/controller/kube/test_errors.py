"""What the server's refusals mean."""

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
async def test_code_says_which_error_it_is(
    api: FakeApi, server: ApiClient, code: int, kind: type[errors.ApiError]
) -> None:
    api.faults.refuse(code, times=2)
    with pytest.raises(kind, match=rf"get workronjobs.workron.dev default/one: {code}"):
        await server.get(_ONE)


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_only_what_may_be_over_soon_passes(
    api: FakeApi, server: ApiClient, code: int
) -> None:
    api.faults.refuse(code, retry_after=7)
    with pytest.raises(errors.TransientApiError) as caught:
        await server.get(_ONE)
    assert caught.value.after == 7


async def test_passing_error_without_advice_has_none(api: FakeApi, server: ApiClient) -> None:
    api.faults.refuse(429)
    with pytest.raises(errors.BusyError) as caught:
        await server.get(_ONE)
    assert caught.value.after is None


async def test_missing_object_is_told_from_a_missing_resource(
    api: FakeApi, server: ApiClient
) -> None:
    with pytest.raises(errors.ObjectNotFoundError):
        await server.get(_ONE)
    api.served.remove(JOB)
    with pytest.raises(errors.KindNotServedError, match="install its CustomResourceDefinition"):
        await server.get(_ONE)


async def test_forbidden_says_what_would_allow_it(api: FakeApi, server: ApiClient) -> None:
    api.faults.refuse(403, times=2)
    with pytest.raises(errors.ForbiddenError) as caught:
        await server.patch(JOB.resource.at("default", "one", "status"), {})
    assert str(caught.value).endswith(
        "to allow it, add the verb patch on workronjobs/status"
        ' of API group "workron.dev" to a Role in namespace default'
    )
    with pytest.raises(errors.ForbiddenError, match="to a ClusterRole"):
        await server.list_page(JOB.resource.at(), {})


async def test_words_of_a_proxy_are_said_and_cut_short(api: FakeApi, server: ApiClient) -> None:
    api.faults.refuse(502, text="<html>" + "no upstream " * 1000)
    with pytest.raises(errors.UnreachableError, match="502 <html>no upstream") as caught:
        await server.get(_ONE)
    assert len(str(caught.value)) < 600


async def test_answer_that_is_no_json_is_no_answer(api: FakeApi, server: ApiClient) -> None:
    api.faults.refuse(200, text="<html>sign in</html>")
    with pytest.raises(
        errors.UnreachableError, match="a proxy between the controller and the API server"
    ):
        await server.get(_ONE)


async def test_refused_repeats_what_the_server_says(server: ApiClient) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}}
    with pytest.raises(errors.InvalidError, match="the object is not a Job of"):
        await server.create(JOB.resource.at("default"), body)
