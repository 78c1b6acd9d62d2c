"""A minimal client of the Kubernetes API, for the programs of the chart.

It uses only the standard library, so that every image with a Python can run the programs.
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
_TIMEOUT_SECONDS = 30.0


class RequestError(Exception):
    """The API server rejected a request; the message has its reason."""


class ConflictError(RequestError):
    """The object has changed since it was read."""


class Cluster:
    """The API server, accessed with the token of one ServiceAccount."""

    def __init__(self, address: str, token: str, tls: ssl.SSLContext | None) -> None:
        """Use this address; `tls` verifies the server."""
        self._address = address
        self._token = token
        self._tls = tls

    def get(self, path: str) -> Any:
        """Read an object."""
        return self._request("GET", path)

    def create(self, path: str, body: object) -> Any:
        """Create an object, and return it as the API server stored it."""
        return self._request("POST", path, body)

    def merge(self, path: str, body: object) -> Any:
        """Apply a merge patch to an object."""
        return self._request("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str) -> Any:
        """Delete an object."""
        return self._request("DELETE", path)

    def _request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        request = urllib.request.Request(  # noqa: S310 - the address is fixed by `in_pod`
            self._address + path, data, headers, method=method
        )
        try:
            with urllib.request.urlopen(  # noqa: S310 - (the same)
                request, timeout=_TIMEOUT_SECONDS, context=self._tls
            ) as response:
                return json.load(response)
        except urllib.error.HTTPError as failure:
            is_conflict = failure.code == http.HTTPStatus.CONFLICT
            error = ConflictError if is_conflict else RequestError
            message = _message(failure.read().decode(errors="replace"))
            raise error(f"{method} {path}: {failure.code}: {message}") from None


def in_pod() -> Cluster:
    """Return the cluster of the pod that this program runs in."""
    token = (_ACCOUNT / "token").read_text().strip()
    tls = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    return Cluster("https://kubernetes.default.svc", token, tls)


def _message(body: str) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body
