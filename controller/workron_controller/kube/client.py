"""A client of the Kubernetes API: one method for each verb, JSON objects in and out.

`ApiClient` sends each request once, and once more after a 401 with fresh credentials. Errors are
those of `kube.errors`. `RetryingCalls` retries transient errors, and `list_pages` reads a
collection in pages. A component whose requests must not wait behind others, such as the leader
election, has a client of its own.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self, TypeVar

import aiohttp
import msgspec

from workron.retry import RetryBackoff, RetryDeadline, retry
from workron_controller.kube import errors
from workron_controller.kube.errors import ErrorResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from workron.core.clock import Clock, Rng, Sleep
    from workron_controller.kube.auth import ApiAccess, ApiEndpoint
    from workron_controller.kube.resources import ResourcePath


FIELD_MANAGER: Final = "workron-controller"
_MAX_IN_FLIGHT: Final = 32
_TIMEOUT: Final = 30.0
_MANAGED: Final = {"fieldManager": FIELD_MANAGER}
_MERGE_PATCH: Final = "application/merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"
_READ_VERBS: Final = frozenset({"get", "list"})
WRITE_OK: Final = "Done"


class KubeApi(Protocol):
    """The requests of `ApiClient`; tests of pools answer them from memory."""

    async def get(self, path: ResourcePath, /) -> dict[str, Any]:
        """Read one object."""

    async def list_page(
        self, path: ResourcePath, parameters: Mapping[str, str], /
    ) -> dict[str, Any]:
        """Read one page of a list."""

    async def create(self, path: ResourcePath, body: Mapping[str, Any], /) -> dict[str, Any]:
        """Create an object in this collection."""

    async def patch(self, path: ResourcePath, body: Mapping[str, Any], /) -> dict[str, Any]:
        """Change the fields that are in the body."""

    async def replace_status(
        self, path: ResourcePath, uid: str, status: Mapping[str, Any], /
    ) -> object:
        """Replace the status of the object with this uid."""

    async def apply(self, path: ResourcePath, body: Mapping[str, Any], /) -> dict[str, Any]:
        """Apply an object on the server side."""

    async def delete(self, path: ResourcePath, uid: str, /) -> None:
        """Delete the object with this uid."""


class ApiWrite(NamedTuple):
    """The labels by which writing requests are counted."""

    verb: str
    resource: str
    outcome: str
    """`WRITE_OK`, or the name of the error without `Error`."""


@dataclass(frozen=True, slots=True)
class _Request:
    verb: str
    method: str
    path: ResourcePath
    parameters: Mapping[str, str]
    body: bytes | None = None
    content_type: str = "application/json"

    def count_as(self, outcome: str) -> ApiWrite:
        plural, subresource = self.path.resource.plural, self.path.subresource
        resource = f"{plural}/{subresource}" if subresource else plural
        return ApiWrite(self.verb, resource, outcome)

    def error(self, answer: aiohttp.ClientResponse, body: bytes) -> errors.ApiError:
        tests_uid = self.content_type == _JSON_PATCH
        response = ErrorResponse(
            self.verb, self.path, answer.status, answer.headers, body, tests_uid
        )
        return response.error


class ApiClient:
    """A session with the API server, to be used as an async context manager."""

    def __init__(
        self, access: ApiAccess, in_flight: int = _MAX_IN_FLIGHT, seconds: float = _TIMEOUT
    ) -> None:
        self._access = access
        self._slots = asyncio.Semaphore(in_flight)
        self._seconds = seconds
        self.writes: Counter[ApiWrite] = Counter()
        # The slots bound the connections: the timeout does not count the wait for a slot.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=seconds),
            headers={"User-Agent": FIELD_MANAGER},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, path: ResourcePath) -> dict[str, Any]:
        """Read one object."""
        return await self._send(_Request("get", "GET", path, {}))

    async def list_page(self, path: ResourcePath, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Read one page of a list; see `list_pages`."""
        return await self._send(_Request("list", "GET", path, parameters))

    async def create(self, path: ResourcePath, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object in this collection; ConflictError if the name exists."""
        return await self._send(
            _Request("create", "POST", path, _MANAGED, msgspec.json.encode(body))
        )

    async def patch(self, path: ResourcePath, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change the fields that are in the body; null removes one.

        `metadata.resourceVersion` makes it a ConflictError if the object has changed since, and
        `metadata.uid` if it is another object. The server ignores both for a status: see
        `replace_status`.
        """
        return await self._send(
            _Request("patch", "PATCH", path, _MANAGED, msgspec.json.encode(body), _MERGE_PATCH)
        )

    async def replace_status(
        self, path: ResourcePath, uid: str, status: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Replace the status of the object with this uid; ConflictError if it is another one.

        The server ignores a uid in a merge patch of a status, so a JSON patch tests it.
        """
        steps = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/status", "value": status},
        ]
        body = msgspec.json.encode(steps)
        return await self._send(_Request("patch", "PATCH", path, _MANAGED, body, _JSON_PATCH))

    async def apply(self, path: ResourcePath, body: Mapping[str, Any]) -> dict[str, Any]:
        """Apply an object on the server side, and take over fields of other managers."""
        parameters = {**_MANAGED, "force": "true"}
        return await self._send(
            _Request("patch", "PATCH", path, parameters, msgspec.json.encode(body), _APPLY_PATCH)
        )

    async def delete(self, path: ResourcePath, uid: str) -> None:
        """Delete the object with this uid; ConflictError if it is another one."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        await self._send(_Request("delete", "DELETE", path, {}, msgspec.json.encode(options)))

    async def _send(self, request: _Request) -> dict[str, Any]:
        async with self._slots:
            endpoint = await self._access.endpoint()
            try:
                return await self._send_counted(request, endpoint)
            except errors.UnauthorizedError:
                # The token has expired.
                return await self._send_counted(request, await self._access.refresh(endpoint))

    async def _send_counted(self, request: _Request, endpoint: ApiEndpoint) -> dict[str, Any]:
        outcome = WRITE_OK
        try:
            return await self._send_once(request, endpoint)
        except errors.ApiError as error:
            outcome = type(error).__name__.removesuffix("Error")
            raise
        finally:
            if request.verb not in _READ_VERBS:
                self.writes[request.count_as(outcome)] += 1

    async def _send_once(self, request: _Request, endpoint: ApiEndpoint) -> dict[str, Any]:
        try:
            async with self._session.request(
                request.method,
                endpoint.server + request.path.path,
                params=request.parameters,
                data=request.body,
                headers={**endpoint.headers, "Content-Type": request.content_type},
                ssl=endpoint.ssl_context,
                proxy=endpoint.proxy,
                server_hostname=endpoint.server_name,
                allow_redirects=False,
            ) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = str(error) or f"no answer within {self._seconds:g} s"
            raise errors.UnreachableError(
                f"{request.verb} {request.path}: {endpoint.server} does not answer: {why}"
            ) from error
        return _decode(request, answer, body)


def _decode(request: _Request, answer: aiohttp.ClientResponse, body: bytes) -> dict[str, Any]:
    if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        raise request.error(answer, body)
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise errors.UnreachableError(
            f"{request.verb} {request.path}: the answer is not a JSON object ({error}); a proxy"
            " between the controller and the API server may have answered instead"
        ) from error


Answer = TypeVar("Answer")

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 10.0


class RetryingCalls:
    """Retries transient errors for up to `seconds`."""

    def __init__(
        self, clock: Clock, rng: Rng, seconds: float = 60.0, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._clock = clock
        self._backoff = RetryBackoff(_FIRST_PAUSE, _LONGEST_PAUSE, jitter=0.5, rng=rng)
        self._seconds = seconds
        self._sleep = sleep

    async def __call__(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Call until there is an answer; raises other errors, and the last one when time is up."""
        return await retry(
            call,
            errors=errors.TransientApiError,
            backoff=self._backoff,
            deadline=RetryDeadline.after(self._clock, self._seconds),
            sleep=self._sleep,
        )


_PAGE_SIZE: Final = 500
_MAX_STARTS: Final = 3
"""A list that expires this often takes longer than the server keeps its snapshot."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list."""

    items: list[dict[str, Any]]
    resource_version: str
    """Of the list: the same on every page since the first."""
    is_first: bool
    """The list has started, or started again: drop the pages before."""
    is_last: bool
    """The pages since the first are the whole list."""


@dataclass(frozen=True, slots=True)
class ListSelector:
    """Label and field selectors of the API; empty for all objects."""

    labels: str = ""
    fields: str = ""

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the request."""
        selectors = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {key: value for key, value in selectors.items() if value}


async def list_pages(
    api: KubeApi,
    retrying: RetryingCalls,
    path: ResourcePath,
    selector: ListSelector | None = None,
    page_size: int = _PAGE_SIZE,
) -> AsyncIterator[ListPage]:
    """Yield all objects of a collection; a page with `is_first` replaces those before it.

    Raises TransientApiError when the retries are used up, and ExpiredError when the list has
    expired too often. The pages yielded before are incomplete then.
    """
    parameters = {**(selector or ListSelector()).parameters, "limit": str(page_size)}
    for start in range(1, _MAX_STARTS + 1):
        try:
            async for page in _list_once(api, retrying, path, parameters):
                yield page
        except errors.ExpiredError:
            if start == _MAX_STARTS:
                raise
        else:
            return


async def _list_once(
    api: KubeApi, retrying: RetryingCalls, path: ResourcePath, parameters: Mapping[str, str]
) -> AsyncIterator[ListPage]:
    token: str | None = None
    while token != "":
        position = {"continue": token} if token else {}
        answer = await retrying(functools.partial(api.list_page, path, {**parameters, **position}))
        metadata, is_first = answer["metadata"], token is None
        token = metadata.get("continue") or ""
        yield ListPage(answer["items"], metadata["resourceVersion"], is_first, is_last=not token)


async def list_all(
    api: KubeApi, retrying: RetryingCalls, path: ResourcePath, labels: str = ""
) -> list[Mapping[str, Any]]:
    """Return a whole collection."""
    items: list[Mapping[str, Any]] = []
    async for page in list_pages(api, retrying, path, ListSelector(labels)):
        items = [*([] if page.is_first else items), *page.items]
    return items
