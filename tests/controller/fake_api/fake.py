"""The fake API server: its HTTP side, and the methods by which tests change objects."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.controller.fake_api import kinds, patches, requests, status_errors, writes
from tests.controller.fake_api.faults import Faults
from tests.controller.fake_api.kinds import Json, Kind
from tests.controller.fake_api.lists import Lists
from tests.controller.fake_api.requests import ApiRequest, RequestLog
from tests.controller.fake_api.server_side_apply import Applied, FieldOwners
from tests.controller.fake_api.status_errors import StatusError
from tests.controller.fake_api.storage import Key, Storage
from tests.controller.fake_api.watches import Watches


class FakeApi:
    """An API server on loopback; use it as an async context manager."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.served = set(kinds.KINDS)
        """The kinds with a definition."""
        self._token: str | None = None
        self.url = ""
        self._tls = tls
        self.storage = Storage()
        self.requests = RequestLog()
        self.faults = Faults()
        self.watches = Watches(self.storage)
        self._lists = Lists(self.storage)
        self._owners = FieldOwners(self.storage)
        app = web.Application(client_max_size=4 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"{'https' if self._tls else 'http'}://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.watches.end()
        await self._runner.cleanup()

    def require_token(self, token: str) -> None:
        """Refuse requests without this token."""
        self._token = token

    def kubeconfig(self, folder: Path) -> Path:
        """Write a kubeconfig file for this server."""
        user = {"token": self._token} if self._token else {}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
            "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
            "users": [{"name": "fake", "user": user}],
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(config))
        return path

    # Changes by tests, which are neither logged nor subject to faults.

    def add(self, kind: Kind, name: str, namespace: str = "default", **content: Any) -> Json:
        """Create an object."""
        metadata = {"name": name} | content.pop("metadata", {})
        body = {"apiVersion": kind.version, "kind": kind.name, "metadata": metadata, **content}
        return writes.create(self.storage, kind, namespace if kind.is_namespaced else "", body)

    def edit(self, kind: Kind, name: str, namespace: str = "default", **content: Any) -> Json:
        """Change fields of an object, or its status if only `status` is given."""
        subresource = "status" if kind.has_status and set(content) == {"status"} else ""
        key = self._key(kind, namespace, name)
        return writes.change(
            self.storage, key, subresource, lambda body: patches.merge(body, content)
        )

    def remove(self, kind: Kind, name: str, namespace: str = "default") -> None:
        """Delete an object."""
        writes.delete(self.storage, self._key(kind, namespace, name), {})

    def find(self, kind: Kind, name: str, namespace: str = "default") -> Json | None:
        """Return an object, if it exists."""
        return self.storage.find(self._key(kind, namespace, name))

    @staticmethod
    def _key(kind: Kind, namespace: str | None, name: str) -> Key:
        return kind, (namespace or "") if kind.is_namespaced else "", name

    # Requests over HTTP.

    async def _handle(self, http_request: web.Request) -> web.StreamResponse:
        request = await requests.parse(http_request, self.served)
        self.requests.add(request)

        async def proceed() -> web.StreamResponse:
            return await self._respond(http_request, request)

        response = await self.faults.handle(http_request, request, proceed)
        self.requests.record_answer(request, response.status)
        return response

    async def _respond(self, http_request: web.Request, request: ApiRequest) -> web.StreamResponse:
        try:
            authorization = http_request.headers.get("Authorization")
            if self._token and authorization != f"Bearer {self._token}":
                raise status_errors.unauthorized()
            if request.verb == "discover":
                return _json(self._discover(request.path))
            if request.kind is None or (request.subresource and not request.kind.has_status):
                return _json(None)
            if request.verb == "watch":
                return await self.watches.respond(http_request, request)
            return _json(self._carry_out(request, request.kind))
        except StatusError as error:
            return web.json_response(error.status, status=error.code)

    def _discover(self, path: str) -> Json | None:
        match path.strip("/").split("/"):
            case ["version"]:
                return {"major": "1", "minor": "34", "gitVersion": "v1.34.4"}
            case ["api"]:
                return {"kind": "APIVersions", "versions": ["v1"]}
            case ["apis"]:
                return kinds.groups(self.served)
            case ["api", version]:
                return kinds.resources(self.served, "", version)
            case ["apis", group, version]:
                return kinds.resources(self.served, group, version)
            case _:
                return None

    def _carry_out(self, request: ApiRequest, kind: Kind) -> Json:
        key = self._key(kind, request.namespace, request.name or "")
        match request.verb:
            case "get":
                found = self.storage.find(key)
                if found is None:
                    raise status_errors.not_found(kind, key[2])
                return found
            case "list":
                return self._lists.page(kind, request.namespace, request.query)
            case "create":
                return writes.create(self.storage, kind, key[1], request.body)
            case "patch":
                return writes.change(self.storage, key, request.subresource, _patch(request))
            case "apply":
                is_forced = request.query.get("force") == "true"
                manager = request.query["fieldManager"]
                applied = Applied(manager, request.subresource, is_forced, request.body)
                return self._owners.apply(key, applied)
            case "delete":
                preconditions = (request.body or {}).get("preconditions") or {}
                return writes.delete(self.storage, key, preconditions)
            case verb:
                raise status_errors.bad_request(f"the fake does not know {verb}")


def _patch(request: ApiRequest) -> Callable[[Json], Json]:
    """Return the patch of a request, by its content type."""
    if request.content_type == requests.JSON_PATCH:
        return lambda body: patches.apply_json_patch(body, request.body)
    return lambda body: patches.merge(body, request.body)


def _json(body: Json | None) -> web.Response:
    """Return a response; None stands for a resource that is not served, as in a real server."""
    if body is None:
        return web.Response(status=HTTPStatus.NOT_FOUND, text="404 page not found\n")
    return web.json_response(body)
