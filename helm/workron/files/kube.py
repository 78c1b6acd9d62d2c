"""Speaks with the cluster's API server as the ServiceAccount of this pod.

Called by the other programs here. Python's standard library and no more, so that any image with a
Python runs them.
"""

from __future__ import annotations

import http
import json
import pathlib
import ssl
import urllib.error
import urllib.request
from typing import Any

_ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECONDS = 30.0


class RefusedError(Exception):
    """The API server does not do what was asked for, and says why."""


class ConflictError(RefusedError):
    """The object is not any more as it was when it was read."""


class Cluster:
    """The API server, as one account sees it."""

    def __init__(self, address: str, token: str, trust: ssl.SSLContext | None) -> None:
        """Speak with that address; `trust` is who vouches for it."""
        self._address = address
        self._token = token
        self._trust = trust

    def get(self, path: str) -> Any:
        """Read an object."""
        return self._call("GET", path)

    def create(self, path: str, body: object) -> Any:
        """Make an object, and give what was made."""
        return self._call("POST", path, body)

    def merge(self, path: str, body: object) -> Any:
        """Change what `body` names of an object."""
        return self._call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str) -> Any:
        """Delete an object."""
        return self._call("DELETE", path)

    def _call(
        self, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        request = urllib.request.Request(  # noqa: S310 - the address is our own
            self._address + path, data, headers, method=method
        )
        try:
            with urllib.request.urlopen(  # noqa: S310 - (the same)
                request, timeout=_SECONDS, context=self._trust
            ) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            error = ConflictError if refused.code == http.HTTPStatus.CONFLICT else RefusedError
            said = _message(refused.read().decode(errors="replace"))
            raise error(f"{method} {path}: {refused.code}: {said}") from None


def in_pod() -> Cluster:
    """Give the cluster in which this runs."""
    token = (_ACCOUNT / "token").read_text().strip()
    trust = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    return Cluster("https://kubernetes.default.svc", token, trust)


def _message(said: str) -> str:
    try:
        return str(json.loads(said)["message"])
    except (ValueError, KeyError, TypeError):
        return said
