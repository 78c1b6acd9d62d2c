"""Errors of the Kubernetes API, as a tree below `ApiError`, and which response is which error.

A message says which request failed, why, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec
from msgspec import Struct

from workron.core import errors
from workron.retry import RetryAfterError
from workron_controller.kube.resources import ResourcePath


class ApiError(errors.WorkronError):
    """A request to the API server failed."""

    exit_code = 3


class AccessError(ApiError):
    """The address of the API server or our credentials are unknown."""


class TransientApiError(ApiError, RetryAfterError):
    """The same request may succeed soon; `after` has the seconds that the server asks for."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class UnreachableError(TransientApiError):
    """No answer, or a server error (5xx); the request may have been carried out or not."""


class BusyError(TransientApiError):
    """The server limits our requests (429); it did nothing."""


class ObjectNotFoundError(ApiError):
    """The object or its namespace does not exist (404)."""


class KindNotServedError(ApiError):
    """The server does not know the resource (404), which says nothing about its objects."""


class ConflictError(ApiError):
    """The name exists, or the object has changed or is another one (409)."""


class ForeignObjectError(ConflictError):
    """An object of this name belongs to another program or user; remove it there."""


class ExpiredError(ApiError):
    """The server cannot continue a list (410); it must be read from its start."""


class ForbiddenError(ApiError):
    """The server knows us and does not allow the request (403)."""


class UnauthorizedError(ApiError):
    """The server refuses our credentials (401)."""


class InvalidError(ApiError):
    """The request itself is wrong and would be refused again."""


_MAX_MESSAGE: Final = 500
"""A message of the server can repeat the whole object."""


class _Cause(Struct):
    field: str = ""


class _Details(Struct, rename={"retry_after": "retryAfterSeconds"}):
    kind: str = ""
    causes: list[_Cause] = []
    retry_after: int | None = None


class _Status(Struct):
    """The Status object of the API; all fields are empty where a proxy has answered."""

    message: str = ""
    details: _Details = msgspec.field(default_factory=_Details)


_BY_CODE: Final[dict[int, tuple[type[ApiError], str]]] = {
    HTTPStatus.NOT_FOUND: (ObjectNotFoundError, ""),
    HTTPStatus.CONFLICT: (ConflictError, ""),
    HTTPStatus.GONE: (ExpiredError, "; start the list again"),
    HTTPStatus.UNAUTHORIZED: (
        UnauthorizedError,
        "; the token or certificate is wrong or has expired: renew it",
    ),
}
"""Error and advice of the codes that `from_response` does not handle itself."""


def from_response(
    verb: str,
    path: ResourcePath,
    code: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    tests_uid: bool,
) -> ApiError:
    """Return the error of a response that is not 2xx; `verb` is as RBAC names it.

    `tests_uid`: the request was a JSON patch that tests the uid.
    """
    status = _parse_status(body)
    text = (status.message or body.decode(errors="replace")).strip()
    text = text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}…"
    message = f"{verb} {path}: {code} {text}".rstrip()
    # If not, a 404 says that the server does not know the resource.
    is_about_object = status.details.kind in {path.resource.plural, "namespaces"}
    match code:
        case HTTPStatus.TOO_MANY_REQUESTS:
            return BusyError(message, _retry_after(headers, status))
        case _ if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return UnreachableError(message, _retry_after(headers, status))
        case HTTPStatus.NOT_FOUND if not is_about_object:
            return KindNotServedError(
                f"{message}; the server has no resource {path.resource} of version"
                f" {path.resource.version}: install its CustomResourceDefinition"
            )
        case HTTPStatus.FORBIDDEN:
            return ForbiddenError(f"{message}; {_missing_permission(verb, path)}")
        case HTTPStatus.UNPROCESSABLE_ENTITY if _is_about_uid(status, tests_uid=tests_uid):
            return ConflictError(f"{message}; another object has this name now")
        case _:
            error, advice = _BY_CODE.get(code, (InvalidError, ""))
            return error(message + advice)


def _parse_status(body: bytes) -> _Status:
    try:
        return msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        return _Status()


def _retry_after(headers: Mapping[str, str], status: _Status) -> float | None:
    seconds = headers.get("Retry-After") or status.details.retry_after
    try:
        return None if seconds is None else float(int(seconds))
    except ValueError:
        return None  # a date, which the API server does not send


def _is_about_uid(status: _Status, *, tests_uid: bool) -> bool:
    """Return whether the uid did not match; a failed test of a JSON patch has no details."""
    is_failed_test = tests_uid and status.details == _Details()
    return is_failed_test or any(cause.field == "metadata.uid" for cause in status.details.causes)


def _missing_permission(verb: str, path: ResourcePath) -> str:
    role = f"Role in namespace {path.namespace}" if path.namespace else "ClusterRole"
    return (
        f"to allow it, add the verb {verb} on {path.rbac_resource} of API group"
        f' "{path.resource.group}" to a {role}'
    )
