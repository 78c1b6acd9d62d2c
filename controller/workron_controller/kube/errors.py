"""Errors of the Kubernetes API, as one tree.

    ApiError(WorkronError)
    ├── AccessError           the address of the server or our credentials are unknown
    ├── TransientApiError     the same request may succeed soon
    │   ├── UnreachableError      no answer, or a server error (5xx)
    │   └── BusyError             too many requests (429)
    ├── ObjectNotFoundError   no such object or namespace (404)
    ├── KindNotServedError    no such resource: its CustomResourceDefinition is missing (404)
    ├── ConflictError         the object is another one, or has changed (409)
    │   └── ForeignObjectError    the name belongs to an object of another program
    ├── ExpiredError          a list cannot be continued (410)
    ├── ForbiddenError        we are not allowed to do that (403)
    ├── UnauthorizedError     our credentials are refused (401)
    └── InvalidError          the request itself is wrong

A message says which request failed, why, and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from workron.core import errors
from workron.retry import RetryAfterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron_controller.kube.resources import ResourcePath


class ApiError(errors.WorkronError):
    """A request to the API server failed."""


class AccessError(ApiError):
    """The address of the API server or our credentials are unknown."""


class TransientApiError(ApiError, RetryAfterError):
    """The same request may succeed soon; `after` has the seconds that the server asks for."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class UnreachableError(TransientApiError):
    """No answer, or a server error; the request may have been carried out or not."""


class BusyError(TransientApiError):
    """The server limits our requests; it did nothing."""


class ObjectNotFoundError(ApiError):
    """The object or its namespace does not exist."""


class KindNotServedError(ApiError):
    """The server does not know the resource, which says nothing about its objects."""


class ConflictError(ApiError):
    """The name exists, or the object has changed or is another one."""


class ForeignObjectError(ConflictError):
    """An object of this name belongs to another program or user; remove it there."""


class ExpiredError(ApiError):
    """The server cannot continue a list; it must be read from its start."""


class ForbiddenError(ApiError):
    """The server knows us and does not allow the request."""


class UnauthorizedError(ApiError):
    """The server refuses our credentials."""


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


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """A response with a status code other than 2xx."""

    verb: str
    """As RBAC names it: get, list, create, patch, delete."""
    path: ResourcePath
    code: int
    headers: Mapping[str, str]
    body: bytes
    tests_uid: bool = False
    """Whether the request was a JSON patch that tests the uid."""

    @property
    def error(self) -> ApiError:
        """The error to raise."""
        status = _status(self.body)
        message = f"{self.verb} {self.path}: {self.code} {_text(status, self.body)}".rstrip()
        if self.code == HTTPStatus.TOO_MANY_REQUESTS:
            return BusyError(message, self._retry_after(status))
        if self.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return UnreachableError(message, self._retry_after(status))
        return self._lasting_error(status, message)

    def _lasting_error(self, status: _Status, message: str) -> ApiError:
        match self.code:
            case HTTPStatus.NOT_FOUND if not self._is_about_object(status):
                return KindNotServedError(f"{message}; {self._missing_definition()}")
            case HTTPStatus.FORBIDDEN:
                return ForbiddenError(f"{message}; {self._missing_permission()}")
            case HTTPStatus.UNPROCESSABLE_ENTITY if self._is_about_uid(status):
                return ConflictError(f"{message}; another object has this name now")
            case _:
                error, advice = _BY_CODE.get(self.code, (InvalidError, ""))
                return error(message + advice)

    def _is_about_object(self, status: _Status) -> bool:
        """Distinguish a missing object from a missing resource."""
        return status.details.kind in {self.path.resource.plural, "namespaces"}

    def _is_about_uid(self, status: _Status) -> bool:
        """Return whether the uid did not match; a failed test of a JSON patch has no details."""
        is_failed_test = self.tests_uid and status.details == _Details()
        return is_failed_test or any(
            cause.field == "metadata.uid" for cause in status.details.causes
        )

    def _missing_definition(self) -> str:
        resource = self.path.resource
        return (
            f"the server has no resource {resource} of version {resource.version}: install its"
            " CustomResourceDefinition"
        )

    def _missing_permission(self) -> str:
        path = self.path
        subresource = f"/{path.subresource}" if path.subresource else ""
        role, where = (
            ("Role", f" in namespace {path.namespace}") if path.namespace else ("ClusterRole", "")
        )
        return (
            f"to allow it, add the verb {self.verb} on {path.resource.plural}{subresource} of API"
            f' group "{path.resource.group}" to a {role}{where}'
        )

    def _retry_after(self, status: _Status) -> float | None:
        seconds = self.headers.get("Retry-After") or status.details.retry_after
        try:
            return None if seconds is None else float(int(seconds))
        except ValueError:
            return None  # a date, which the API server does not send


def _status(body: bytes) -> _Status:
    try:
        return msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        return _Status()


def _text(status: _Status, body: bytes) -> str:
    text = (status.message or body.decode(errors="replace")).strip()
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}…"


_BY_CODE: Final[dict[int, tuple[type[ApiError], str]]] = {
    HTTPStatus.NOT_FOUND: (ObjectNotFoundError, ""),
    HTTPStatus.CONFLICT: (ConflictError, ""),
    HTTPStatus.GONE: (ExpiredError, "; start the list again"),
    HTTPStatus.UNAUTHORIZED: (
        UnauthorizedError,
        "; the token or certificate is wrong or has expired: renew it",
    ),
}
"""Error and advice of the codes that need no closer look."""
