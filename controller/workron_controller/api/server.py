"""One session with the API server: a verb a method, plain JSON in and out, one try each.

Called by all that asks or tells the cluster something; `retrying` repeats what may pass. Whoever
must not queue behind others (an election) has a `Server` of its own.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import aiohttp
import msgspec

from workron_controller.api import errors
from workron_controller.api.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron_controller.api.access import Access
    from workron_controller.api.entry import Entry
    from workron_controller.api.place import Place

MANAGER: Final = "workron-controller"
"""Who the cluster says wrote our fields."""
_IN_FLIGHT: Final = 32
_SECONDS: Final = 30.0


_READS: Final = frozenset({"get", "list"})
DONE: Final = "Done"


class Write(NamedTuple):
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
    place: Place
    parameters: Mapping[str, str]
    body: bytes | None = None
    form: str = "application/json"

    def write(self, outcome: str) -> Write:
        """Say what it is counted as."""
        kind, part = self.place.resource.plural, self.place.subresource
        return Write(self.verb, f"{kind}/{part}" if part else kind, outcome)

    def refusal(self, answer: aiohttp.ClientResponse, body: bytes) -> Refusal:
        is_testing = self.form == _STEPS
        return Refusal(self.verb, self.place, answer.status, answer.headers, body, is_testing)


class Server:
    """A session; use it as an async context manager."""

    def __init__(
        self, access: Access, in_flight: int = _IN_FLIGHT, seconds: float = _SECONDS
    ) -> None:
        self._access = access
        self._turns = asyncio.Semaphore(in_flight)
        self._seconds = seconds
        self.writes: Counter[Write] = Counter()
        # The turns bound the connections, and waiting for one's turn is not waiting for an answer.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=seconds),
            headers={"User-Agent": MANAGER},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, place: Place) -> dict[str, Any]:
        """Read one object."""
        return await self._ask(_Request("get", "GET", place, {}))

    async def part(self, place: Place, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Read a part of a list; `listing` puts parts together."""
        return await self._ask(_Request("list", "GET", place, parameters))

    async def create(self, place: Place, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make an object in this collection; ConflictError if there is one of that name."""
        return await self._ask(
            _Request("create", "POST", place, _MANAGED, msgspec.json.encode(body))
        )

    async def patch(self, place: Place, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change the fields that the body names; null removes one.

        A `metadata.resourceVersion` in it makes it ConflictError if the object has changed since. A
        `metadata.uid` guards the object alone, not its status: see `set_status`.
        """
        return await self._ask(
            _Request("patch", "PATCH", place, _MANAGED, msgspec.json.encode(body), _MERGE)
        )

    async def set_status(self, place: Place, uid: str, status: Mapping[str, Any]) -> dict[str, Any]:
        """Write the whole status of the object with this uid; ConflictError if it is another one.

        The server takes no notice of a uid in a merge patch to a status, so it is asked to test it.
        """
        steps = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/status", "value": status},
        ]
        body = msgspec.json.encode(steps)
        return await self._ask(_Request("patch", "PATCH", place, _MANAGED, body, _STEPS))

    async def apply(self, place: Place, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make the object, or make what we said of it before into this; others' words yield."""
        whose = {**_MANAGED, "force": "true"}
        return await self._ask(
            _Request("patch", "PATCH", place, whose, msgspec.json.encode(body), _APPLY)
        )

    async def delete(self, place: Place, uid: str) -> None:
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

    async def _counted(self, request: _Request, entry: Entry) -> dict[str, Any]:
        outcome = DONE
        try:
            return await self._try(request, entry)
        except errors.ApiError as error:
            outcome = type(error).__name__.removesuffix("Error")
            raise
        finally:
            if request.verb not in _READS:
                self.writes[request.write(outcome)] += 1

    async def _try(self, request: _Request, entry: Entry) -> dict[str, Any]:
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


_MANAGED: Final = {"fieldManager": MANAGER}
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
