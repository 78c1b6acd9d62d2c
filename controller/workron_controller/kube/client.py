"""A client of the Kubernetes API: one method for each verb, JSON objects in and out.

`ApiClient` sends each request once, and once more after a 401 with fresh credentials. Errors are
those of `kube.errors`. `RetryingCalls` retries transient errors, and `list_pages` reads a
collection in pages. A component whose requests must not wait behind others, such as the leader
election, has a client of its own.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Self, TypeVar

import aiohttp
import msgspec
from prometheus_client import Counter

from workron.core.clock import Clock, Rng, Sleep
from workron.retry import RetryBackoff, RetryDeadline, retry
from workron_controller.kube import errors
from workron_controller.kube.auth import ApiAccess, ApiEndpoint
from workron_controller.kube.resources import ResourcePath

FIELD_MANAGER: Final = "workron-controller"
_MAX_IN_FLIGHT: Final = 32
_TIMEOUT: Final = 30.0
_MANAGED: Final = {"fieldManager": FIELD_MANAGER}
_MERGE_PATCH: Final = "application/merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"
_METHODS: Final = {
    "get": "GET", "list": "GET", "create": "POST", "patch": "PATCH", "delete": "DELETE",
}  # fmt: skip
"""The HTTP methods of the verbs, which are those of RBAC."""


@dataclass(frozen=True, slots=True)
class _Request:
    verb: str
    path: ResourcePath
    parameters: Mapping[str, str]
    body: object = None
    content_type: str = "application/json"


class ApiClient:
    """A session with the API server, to be used as an async context manager."""

    def __init__(
        self, access: ApiAccess, in_flight: int = _MAX_IN_FLIGHT, seconds: float = _TIMEOUT
    ) -> None:
        self._access = access
        self._slots = asyncio.Semaphore(in_flight)
        self._seconds = seconds
        self.write_counter = Counter(
            "workron_controller_api_writes",
            "Writing requests to the API server by outcome.",
            ["verb", "resource", "outcome"],
            registry=None,
        )
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

    async def get(self, path: ResourcePath, /) -> dict[str, Any]:
        """Read one object."""
        return await self._send(_Request("get", path, {}))

    async def list_page(
        self, path: ResourcePath, parameters: Mapping[str, str], /
    ) -> dict[str, Any]:
        """Read one page of a list; see `list_pages`."""
        return await self._send(_Request("list", path, parameters))

    async def create(self, path: ResourcePath, body: Mapping[str, Any], /) -> dict[str, Any]:
        """Create an object in this collection; ConflictError if the name exists."""
        return await self._send(_Request("create", path, _MANAGED, body))

    async def patch(self, path: ResourcePath, body: Mapping[str, Any], /) -> dict[str, Any]:
        """Change the fields that are in the body; null removes one.

        `metadata.resourceVersion` makes it a ConflictError if the object has changed since, and
        `metadata.uid` if it is another object. The server ignores both for a status: see
        `replace_status`.
        """
        return await self._send(_Request("patch", path, _MANAGED, body, _MERGE_PATCH))

    async def replace_status(
        self, path: ResourcePath, uid: str, status: Mapping[str, Any], /
    ) -> None:
        """Replace the status of the object with this uid; ConflictError if it is another one.

        The server ignores a uid in a merge patch of a status, so a JSON patch tests it.
        """
        steps = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/status", "value": status},
        ]
        await self._send(_Request("patch", path, _MANAGED, steps, _JSON_PATCH))

    async def apply(self, path: ResourcePath, body: Mapping[str, Any], /) -> dict[str, Any]:
        """Apply an object on the server side, and take over fields of other managers."""
        parameters = {**_MANAGED, "force": "true"}
        return await self._send(_Request("patch", path, parameters, body, _APPLY_PATCH))

    async def delete(self, path: ResourcePath, uid: str, /) -> None:
        """Delete the object with this uid; ConflictError if it is another one."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        await self._send(_Request("delete", path, {}, options))

    async def _send(self, request: _Request) -> dict[str, Any]:
        async with self._slots:
            endpoint = await self._access.endpoint()
            try:
                return await self._send_counted(request, endpoint)
            except errors.UnauthorizedError:
                # The token has expired.
                return await self._send_counted(request, await self._access.refresh(endpoint))

    async def _send_counted(self, request: _Request, endpoint: ApiEndpoint) -> dict[str, Any]:
        outcome = "Done"
        try:
            return await self._send_once(request, endpoint)
        except errors.ApiError as error:
            outcome = type(error).__name__.removesuffix("Error")
            raise
        finally:
            if request.body is not None:
                resource = request.path.rbac_resource
                self.write_counter.labels(request.verb, resource, outcome).inc()

    async def _send_once(self, request: _Request, endpoint: ApiEndpoint) -> dict[str, Any]:
        name = f"{request.verb} {request.path}"
        try:
            async with self._session.request(
                _METHODS[request.verb],
                endpoint.server + request.path.path,
                params=request.parameters,
                data=None if request.body is None else msgspec.json.encode(request.body),
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
                f"{name}: {endpoint.server} does not answer: {why}"
            ) from error
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            tests_uid = request.content_type == _JSON_PATCH
            raise errors.from_response(
                request.verb, request.path, answer.status, answer.headers, body, tests_uid=tests_uid
            )
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise errors.UnreachableError(
                f"{name}: the answer is not a JSON object ({error}); a proxy between the controller"
                " and the API server may have answered instead"
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


class ListPage(NamedTuple):
    """One page of a list."""

    items: list[dict[str, Any]]
    is_first: bool
    """The list has started, or started again: drop the pages before."""


async def list_pages(
    api: ApiClient,
    retrying: RetryingCalls,
    path: ResourcePath,
    labels: str = "",
    page_size: int = _PAGE_SIZE,
) -> AsyncIterator[ListPage]:
    """Yield all objects of a collection; a page with `is_first` replaces those before it.

    Raises TransientApiError when the retries are used up, and ExpiredError when the list has
    expired too often. The pages yielded before are incomplete then.
    """
    parameters = {"limit": str(page_size)} | ({"labelSelector": labels} if labels else {})
    position: dict[str, str] = {}
    starts = 1
    while True:
        call = functools.partial(api.list_page, path, parameters | position)
        try:
            answer = await retrying(call)
        except errors.ExpiredError:
            if starts == _MAX_STARTS:
                raise
            starts, position = starts + 1, {}
            continue
        yield ListPage(answer["items"], is_first=not position)
        if not (token := answer["metadata"].get("continue")):
            return
        position = {"continue": token}


async def list_all(
    api: ApiClient, retrying: RetryingCalls, path: ResourcePath, labels: str = ""
) -> list[Mapping[str, Any]]:
    """Return a whole collection."""
    items: list[Mapping[str, Any]] = []
    async for page in list_pages(api, retrying, path, labels):
        items = [*([] if page.is_first else items), *page.items]
    return items
