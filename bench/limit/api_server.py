"""Measures how fast an API server creates an object and patches it, one after the other.

A controller cannot write faster than this. It is measured only if KUBECONFIG names a cluster.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import pathlib
import ssl
import tempfile
import time
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from bench.figure import Side

_TIMEOUT_SECONDS: Final = 30
_NAMESPACES: Final = "/api/v1/namespaces"
_CREATED: Final = "application/json"
_CHANGED: Final = "application/merge-patch+json"


def is_named() -> bool:
    """Whether there is a cluster to measure."""
    return bool(os.environ.get("KUBECONFIG"))


def writing(objects: int) -> Side:
    """Measure creating ConfigMaps and changing each once, in objects a second."""
    title = "an API server, an object created and then changed, one after the other"
    return Side(title, lambda: objects / _seconds(objects))


class _Server:
    """A connection that is kept open, with the credentials of the kubeconfig."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        context = _named(config, "context", config["current-context"])
        cluster = _named(config, "cluster", context["cluster"])
        user = _named(config, "user", context["user"])
        address = urllib.parse.urlsplit(cluster["server"])
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._connection = (
            http.client.HTTPSConnection(address.netloc, context=_trust(cluster, user))
            if address.scheme == "https"
            else http.client.HTTPConnection(address.netloc)
        )
        self._connection.timeout = _TIMEOUT_SECONDS

    def send(self, verb: str, path: str, body: Mapping[str, Any]) -> None:
        """Send a change; RuntimeError if it is refused."""
        kind = _CHANGED if verb == "PATCH" else _CREATED
        headers = {"Content-Type": kind, **self._headers}
        self._connection.request(verb, path, json.dumps(body), headers)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise RuntimeError(f"{verb} {path}: {answer.status}: {said.decode()}")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _named(config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(one[kind] for one in config[f"{kind}s"] if one["name"] == name)
    return found


def _trust(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    trust = ssl.create_default_context(cadata=_text(cluster, "certificate-authority"))
    if certificate := _text(user, "client-certificate"):
        # The library reads these only from files.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{certificate}\n{_text(user, 'client-key')}")
            file.flush()
            trust.load_cert_chain(file.name)
    return trust


def _text(of: Mapping[str, Any], name: str) -> str | None:
    """Return a value of the kubeconfig, or the content of the file that it names."""
    if f"{name}-data" in of:
        return base64.b64decode(of[f"{name}-data"]).decode()
    return pathlib.Path(of[name]).read_text("utf-8") if name in of else None


def _seconds(objects: int) -> float:
    config = yaml.safe_load(pathlib.Path(os.environ["KUBECONFIG"]).read_text("utf-8"))
    with contextlib.closing(_Server(config)) as server, _namespace(server) as path:
        began = time.perf_counter()
        for number in range(objects):
            created = {"metadata": {"name": f"bench-{number}"}, "data": {"state": "created"}}
            server.send("POST", path, created)
            server.send("PATCH", f"{path}/bench-{number}", {"data": {"state": "changed"}})
        return time.perf_counter() - began


@contextlib.contextmanager
def _namespace(server: _Server) -> Iterator[str]:
    """Have one of its own, and give the path of its ConfigMaps."""
    name = f"workron-bench-{uuid.uuid4().hex[:8]}"
    server.send("POST", _NAMESPACES, {"metadata": {"name": name}})
    try:
        yield f"{_NAMESPACES}/{name}/configmaps"
    finally:
        server.send("DELETE", f"{_NAMESPACES}/{name}", {})
