"""The fake API server itself: what tests start, ask through, and reach into."""

from __future__ import annotations

import json
import ssl
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.controller.fake_api import asked as asking
from tests.controller.fake_api import kinds, merging, refused, rules
from tests.controller.fake_api.applying import Applied, Owners
from tests.controller.fake_api.asked import Asked, Record
from tests.controller.fake_api.faults import Faults
from tests.controller.fake_api.kinds import Json, Kind
from tests.controller.fake_api.lists import Lists
from tests.controller.fake_api.refused import RefusedError
from tests.controller.fake_api.storage import Key, Storage
from tests.controller.fake_api.streams import Streams

_STEPS = "application/json-patch+json"


class FakeApi:
    """An API server on loopback; use it as an async context manager."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.served = set(kinds.KINDS)
        """Take one out, and it is as if its definition were missing."""
        self._admitted: str | None = None
        self.url = ""
        self._tls = tls
        self.storage = Storage()
        self.record = Record()
        self.faults = Faults()
        self.streams = Streams(self.storage)
        self._lists = Lists(self.storage)
        self._owners = Owners(self.storage)
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
        self.streams.end()
        await self._runner.cleanup()

    def admit(self, token: str) -> None:
        """Let in who has this token, and from now on nobody else."""
        self._admitted = token

    def kubeconfig(self, folder: Path) -> Path:
        """Write the way in, as kubectl takes it."""
        user = {"token": self._admitted} if self._admitted else {}
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

    # What a person does with kubectl, past the record and the faults.

    def add(self, kind: Kind, name: str, namespace: str = "default", **content: Any) -> Json:
        """Make an object."""
        about = {"name": name} | content.pop("metadata", {})
        body = {"apiVersion": kind.version, "kind": kind.name, "metadata": about, **content}
        return rules.create(self.storage, kind, namespace if kind.is_namespaced else "", body)

    def edit(self, kind: Kind, name: str, namespace: str = "default", **content: Any) -> Json:
        """Change fields of an object; of its status too, where only `status` is given."""
        part = "status" if kind.has_status and set(content) == {"status"} else ""
        key = self._key(kind, namespace, name)
        return rules.change(self.storage, key, part, lambda body: merging.merge(body, content))

    def remove(self, kind: Kind, name: str, namespace: str = "default") -> None:
        """Delete an object."""
        rules.delete(self.storage, self._key(kind, namespace, name), {})

    def find(self, kind: Kind, name: str, namespace: str = "default") -> Json | None:
        """Look at an object."""
        return self.storage.find(self._key(kind, namespace, name))

    @staticmethod
    def _key(kind: Kind, namespace: str | None, name: str) -> Key:
        return kind, (namespace or "") if kind.is_namespaced else "", name

    # What a program asks over HTTP.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        asked = await asking.read(request, self.served)
        self.record.add(asked)

        async def proceed() -> web.StreamResponse:
            return await self._answer(request, asked)

        answer = await self.faults.pass_by(request, asked, proceed)
        self.record.answered(asked, answer.status)
        return answer

    async def _answer(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        try:
            self._let_in(request)
            if asked.verb == "discover":
                return _json(self._discover(asked.path))
            if asked.kind is None or (asked.part and not asked.kind.has_status):
                return _nothing_here()
            if asked.verb == "watch":
                return await self.streams.answer(request, asked)
            return _json(self._do(asked, asked.kind))
        except RefusedError as error:
            return web.json_response(error.status, status=error.code)

    def _let_in(self, request: web.Request) -> None:
        said = request.headers.get("Authorization")
        if self._admitted and said != f"Bearer {self._admitted}":
            raise refused.unknown()

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

    def _do(self, asked: Asked, kind: Kind) -> Json:
        key = self._key(kind, asked.namespace, asked.name or "")
        match asked.verb:
            case "get":
                found = self.storage.find(key)
                if found is None:
                    raise refused.absent(kind, key[2])
                return found
            case "list":
                return self._lists.answer(kind, asked.namespace, asked.query)
            case "create":
                return rules.create(self.storage, kind, key[1], asked.body)
            case "patch":
                return rules.change(self.storage, key, asked.part, _worded(asked))
            case "apply":
                is_forced = asked.query.get("force") == "true"
                manager = asked.query["fieldManager"]
                applied = Applied(manager, asked.part, is_forced, asked.body)
                return self._owners.apply(key, applied)
            case "delete":
                guard = (asked.body or {}).get("preconditions") or {}
                return rules.delete(self.storage, key, guard)
            case _:
                raise refused.bad(f"the fake does not know {asked.verb}")


def _worded(asked: Asked) -> Any:
    """Read a patch by what it calls itself."""
    if asked.form == _STEPS:
        return lambda body: merging.steps(body, asked.body)
    return lambda body: merging.merge(body, asked.body)


def _json(body: Json | None) -> web.Response:
    return _nothing_here() if body is None else web.json_response(body)


def _nothing_here() -> web.Response:
    """Answer as a real server does for a resource that it does not serve: in plain words."""
    return web.Response(status=HTTPStatus.NOT_FOUND, text="404 page not found\n")
