"""What the API server may answer instead of what was asked for, as one tree.

    ApiError(WorkronError)
    ├── AccessError           it is not known where the server is, or who we are
    ├── PassingError          may be over soon: the same request may be answered then
    │   ├── UnreachableError      no answer, or one that says that the server is in trouble
    │   └── BusyError             it takes no more requests of us for now
    ├── AbsentError           no such object
    ├── UnservedError         no such resource: its definition is missing
    ├── ConflictError         the object is another one, or has changed
    │   └── TakenError            the name is somebody else's, and stays so
    ├── GoneError             what was to be continued is forgotten; begin anew
    ├── ForbiddenError        we are known, and may not do that
    ├── UnauthorizedError     we are not known
    └── RefusedError          the request itself is wrong

The message is for a person: which request, what was wrong, and what would be right.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron_controller.kube.resources import ResourcePath


class ApiError(errors.WorkronError):
    """The API server could not do what was asked."""


class AccessError(ApiError):
    """It is not known where the API server is, or who we are to it."""


class TransientError(ApiError):
    """What may be over soon; `after` holds the seconds that the server asks us to wait."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class UnreachableError(TransientError):
    """No answer came, or the server is in trouble; what was asked may have been done or not."""


class BusyError(TransientError):
    """The server takes no more requests of us for now; it did nothing."""


class ObjectNotFoundError(ApiError):
    """The object, or the namespace that it was to be made in, does not exist."""


class KindNotServedError(ApiError):
    """The server knows no such resource; nothing can be said of its objects."""


class ConflictError(ApiError):
    """An object of that name exists, or has changed, or is another one than was meant."""


class AlreadyExistsError(ConflictError):
    """An object of that name is somebody else's; nobody but that one can make way."""


class ExpiredError(ApiError):
    """The server has forgotten where we were; what was read must be read anew."""


class ForbiddenError(ApiError):
    """The server knows us, and we may not do that."""


class UnauthorizedError(ApiError):
    """The server does not know us."""


class InvalidError(ApiError):
    """The request is wrong in itself; it will be refused again."""


_LONGEST: Final = 500
"""Of what the server says: it repeats the whole object where it does not like one."""


class _Cause(Struct):
    field: str = ""


class _Details(Struct, rename={"retry_after": "retryAfterSeconds"}):
    kind: str = ""
    causes: list[_Cause] = []
    retry_after: int | None = None


class _Status(Struct):
    """What the server says of itself; all empty where somebody else has answered."""

    message: str = ""
    details: _Details = msgspec.field(default_factory=_Details)


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An answer that is none."""

    verb: str
    """As rights are named: get, list, create, patch, delete."""
    place: ResourcePath
    code: int
    headers: Mapping[str, str]
    body: bytes
    is_testing: bool = False
    """Whether the request was to test the uid first."""

    @property
    def error(self) -> ApiError:
        """Say it as an error of ours."""
        status = _status(self.body)
        said = _said(status, self.body)
        what = f"{self.verb} {self.place}: {self.code} {said}".rstrip()
        if self.code == HTTPStatus.TOO_MANY_REQUESTS:
            return BusyError(what, self._after(status))
        if self.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return UnreachableError(what, self._after(status))
        return self._lasting(status, what)

    def _lasting(self, status: _Status, what: str) -> ApiError:
        match self.code:
            case HTTPStatus.NOT_FOUND if not self._is_about_an_object(status):
                return KindNotServedError(f"{what}; {self._definition()}")
            case HTTPStatus.FORBIDDEN:
                return ForbiddenError(f"{what}; {self._right()}")
            case HTTPStatus.UNPROCESSABLE_ENTITY if self._is_about_another(status):
                return ConflictError(f"{what}; it is another object of that name")
            case _:
                error, advice = _PLAIN.get(self.code, (InvalidError, ""))
                return error(what + advice)

    def _is_about_an_object(self, status: _Status) -> bool:
        """Tell a missing object from a missing resource: that says nothing of its objects."""
        return status.details.kind in {self.place.resource.plural, "namespaces"}

    def _is_about_another(self, status: _Status) -> bool:
        """Tell whether the uid is what was not liked; a failed test is answered without details."""
        is_failed_test = self.is_testing and status.details == _Details()
        return is_failed_test or any(
            cause.field == "metadata.uid" for cause in status.details.causes
        )

    def _definition(self) -> str:
        resource = self.place.resource
        return (
            f"the server has no resource {resource} of version {resource.version}: install its"
            " CustomResourceDefinition"
        )

    def _right(self) -> str:
        place = self.place
        part = f"/{place.subresource}" if place.subresource else ""
        role, where = (
            ("Role", f" in namespace {place.namespace}") if place.namespace else ("ClusterRole", "")
        )
        return (
            f"a {role}{where} would allow it by the verb {self.verb} on {place.resource.plural}"
            f'{part} of API group "{place.resource.group}"'
        )

    def _after(self, status: _Status) -> float | None:
        said = self.headers.get("Retry-After") or status.details.retry_after
        try:
            return None if said is None else float(int(said))
        except ValueError:
            return None  # a date, which the API server does not send


def _status(body: bytes) -> _Status:
    try:
        return msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        return _Status()


def _said(status: _Status, body: bytes) -> str:
    said = (status.message or body.decode(errors="replace")).strip()
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"


_PLAIN: Final[dict[int, tuple[type[ApiError], str]]] = {
    HTTPStatus.NOT_FOUND: (ObjectNotFoundError, ""),
    HTTPStatus.CONFLICT: (ConflictError, ""),
    HTTPStatus.GONE: (ExpiredError, "; begin anew"),
    HTTPStatus.UNAUTHORIZED: (
        UnauthorizedError,
        "; the token or certificate is wrong or has expired: renew it",
    ),
}
"""What a code means by itself, and what would be right."""
