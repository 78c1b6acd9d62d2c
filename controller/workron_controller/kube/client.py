"""One session with the API server: a verb a method, plain JSON in and out, one try each.

Called by all that asks or tells the cluster something; `retrying` repeats what may pass. Whoever
must not queue behind others (an election) has a `Server` of its own.
"""

from __future__ import annotations

import asyncio
import functools
import math
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self, TypeVar

import aiohttp
import msgspec

from workron_controller.kube import errors
from workron_controller.kube.errors import ErrorResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from workron.core.clock import Clock, Rng, Sleep
    from workron_controller.kube.auth import ApiAccess, ApiEndpoint
    from workron_controller.kube.resources import ResourcePath


FIELD_MANAGER: Final = "workron-controller"
"""Who the cluster says wrote our fields."""
_IN_FLIGHT: Final = 32
_SECONDS: Final = 30.0


_READS: Final = frozenset({"get", "list"})
WRITE_OK: Final = "Done"


class ApiWrite(NamedTuple):
    """What requests that change something are counted by."""

    verb: str
    resource: str
    outcome: str
    """Done, or the error that it ended in, as `errors` calls it."""


@dataclass(frozen=True, slots=True)
class _Request:
    """What is asked, apart from who asks."""

    verb: str
    method: str
    place: ResourcePath
    parameters: Mapping[str, str]
    body: bytes | None = None
    form: str = "application/json"

    def write(self, outcome: str) -> ApiWrite:
        """Say what it is counted as."""
        kind, part = self.place.resource.plural, self.place.subresource
        return ApiWrite(self.verb, f"{kind}/{part}" if part else kind, outcome)

    def refusal(self, answer: aiohttp.ClientResponse, body: bytes) -> ErrorResponse:
        is_testing = self.form == _STEPS
        return ErrorResponse(self.verb, self.place, answer.status, answer.headers, body, is_testing)


class ApiClient:
    """A session; use it as an async context manager."""

    def __init__(
        self, access: ApiAccess, in_flight: int = _IN_FLIGHT, seconds: float = _SECONDS
    ) -> None:
        self._access = access
        self._turns = asyncio.Semaphore(in_flight)
        self._seconds = seconds
        self.writes: Counter[ApiWrite] = Counter()
        # The turns bound the connections, and waiting for one's turn is not waiting for an answer.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=seconds),
            headers={"User-Agent": FIELD_MANAGER},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, place: ResourcePath) -> dict[str, Any]:
        """Read one object."""
        return await self._ask(_Request("get", "GET", place, {}))

    async def part(self, place: ResourcePath, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Read a part of a list; `listing` puts parts together."""
        return await self._ask(_Request("list", "GET", place, parameters))

    async def create(self, place: ResourcePath, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make an object in this collection; ConflictError if there is one of that name."""
        return await self._ask(
            _Request("create", "POST", place, _MANAGED, msgspec.json.encode(body))
        )

    async def patch(self, place: ResourcePath, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change the fields that the body names; null removes one.

        A `metadata.resourceVersion` in it makes it ConflictError if the object has changed since. A
        `metadata.uid` guards the object alone, not its status: see `set_status`.
        """
        return await self._ask(
            _Request("patch", "PATCH", place, _MANAGED, msgspec.json.encode(body), _MERGE)
        )

    async def set_status(
        self, place: ResourcePath, uid: str, status: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Write the whole status of the object with this uid; ConflictError if it is another one.

        The server takes no notice of a uid in a merge patch to a status, so it is asked to test it.
        """
        steps = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/status", "value": status},
        ]
        body = msgspec.json.encode(steps)
        return await self._ask(_Request("patch", "PATCH", place, _MANAGED, body, _STEPS))

    async def apply(self, place: ResourcePath, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make the object, or make what we said of it before into this; others' words yield."""
        whose = {**_MANAGED, "force": "true"}
        return await self._ask(
            _Request("patch", "PATCH", place, whose, msgspec.json.encode(body), _APPLY)
        )

    async def delete(self, place: ResourcePath, uid: str) -> None:
        """Delete the object with this uid; ConflictError if it is another one."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        await self._ask(_Request("delete", "DELETE", place, {}, msgspec.json.encode(options)))

    async def _ask(self, request: _Request) -> dict[str, Any]:
        async with self._turns:
            entry = await self._access.entry()
            try:
                return await self._counted(request, entry)
            except errors.UnauthorizedError:
                # The token was replaced, and this one is over.
                return await self._counted(request, await self._access.anew(entry))

    async def _counted(self, request: _Request, entry: ApiEndpoint) -> dict[str, Any]:
        outcome = WRITE_OK
        try:
            return await self._try(request, entry)
        except errors.ApiError as error:
            outcome = type(error).__name__.removesuffix("Error")
            raise
        finally:
            if request.verb not in _READS:
                self.writes[request.write(outcome)] += 1

    async def _try(self, request: _Request, entry: ApiEndpoint) -> dict[str, Any]:
        try:
            async with self._session.request(
                request.method,
                entry.server + request.place.path,
                params=request.parameters,
                data=request.body,
                headers={**entry.headers, "Content-Type": request.form},
                ssl=entry.tls,
                proxy=entry.proxy,
                server_hostname=entry.server_name,
                allow_redirects=False,
            ) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = str(error) or f"no answer came in {self._seconds:g} s"
            raise errors.UnreachableError(
                f"{request.verb} {request.place}: {entry.server} does not answer: {why}"
            ) from error
        return _read(request, answer, body)


_MANAGED: Final = {"fieldManager": FIELD_MANAGER}
_MERGE: Final = "application/merge-patch+json"
_STEPS: Final = "application/json-patch+json"
_APPLY: Final = "application/apply-patch+yaml"


def _read(request: _Request, answer: aiohttp.ClientResponse, body: bytes) -> dict[str, Any]:
    if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        raise request.refusal(answer, body).error
    try:
        read = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise errors.UnreachableError(
            f"{request.verb} {request.place}: the answer is no JSON object ({error}); something"
            " between us and the API server answers in its place"
        ) from error
    return read


Answer = TypeVar("Answer")

_FIRST_SECONDS: Final = 0.5
_LONGEST_SECONDS: Final = 10.0


class RetryingCalls:
    """Patience, and how much of it there is."""

    def __init__(
        self, clock: Clock, rng: Rng, seconds: float = 60.0, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._seconds = seconds
        self._sleep = sleep

    async def __call__(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Call until there is an answer; raises what does not pass, or has not in time."""
        end, tries = self._clock.monotonic() + self._seconds, 0
        while True:
            try:
                return await call()
            except errors.TransientError as error:
                wait = self._wait(error, tries)
                if self._clock.monotonic() + wait > end:
                    raise
            tries += 1
            await self._sleep(wait)

    def _wait(self, error: errors.TransientError, tries: int) -> float:
        """As long as the server asks for, and never all at the same moment."""
        longest = min(_LONGEST_SECONDS, math.ldexp(_FIRST_SECONDS, tries))
        return (error.after or 0.0) + longest * (1 + self._rng.random()) / 2


_CHUNK: Final = 500
_BEGINNINGS: Final = 3
"""A list that expires more often than this takes longer than the server remembers."""


class ListClient(Protocol):
    """What of `server` is needed here."""

    async def part(
        self, place: ResourcePath, parameters: Mapping[str, str], /
    ) -> Mapping[str, Any]:
        """Read a part of a list."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """A part of a list."""

    items: list[dict[str, Any]]
    version: str
    """Of the list; the same on every page since the first."""
    is_first: bool
    """What came before it is void: the list has begun, or begun anew."""
    is_last: bool
    """Only now what came since the first is all there is."""


@dataclass(frozen=True, slots=True)
class ListSelector:
    """Which objects of a collection, as selectors of the API; empty for all."""

    labels: str = ""
    fields: str = ""

    @property
    def parameters(self) -> dict[str, str]:
        """What a request says of it."""
        said = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {key: value for key, value in said.items() if value}


async def list_pages(
    server: ListClient,
    retrying: RetryingCalls,
    place: ResourcePath,
    choice: ListSelector | None = None,
    chunk: int = _CHUNK,
) -> AsyncIterator[ListPage]:
    """Read all objects of a collection; where a page has `is_first`, forget those before it.

    Raises what stays away for longer than there is patience, and GoneError when the server has
    forgotten the list too often: of what was not read nothing is known then.
    """
    wanted = {**(choice or ListSelector()).parameters, "limit": str(chunk)}
    for beginning in range(1, _BEGINNINGS + 1):
        try:
            async for page in _once(server, retrying, place, wanted):
                yield page
        except errors.ExpiredError:
            if beginning == _BEGINNINGS:
                raise
        else:
            return


async def _once(
    server: ListClient, retrying: RetryingCalls, place: ResourcePath, wanted: Mapping[str, str]
) -> AsyncIterator[ListPage]:
    more: str | None = None
    while more != "":
        where = {"continue": more} if more else {}
        answer = await retrying(functools.partial(server.part, place, {**wanted, **where}))
        about, is_first = answer["metadata"], more is None
        more = about.get("continue") or ""
        yield ListPage(answer["items"], about["resourceVersion"], is_first, is_last=not more)
