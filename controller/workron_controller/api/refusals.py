"""Reads from an answer that is none which error it is, and says it to a person.

Called by `server`. The server explains itself by an object of kind Status; what stands between it
and us (a proxy, a load balancer) by anything at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from workron_controller.api import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron_controller.api.place import Place

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
class Refusal:
    """An answer that is none."""

    verb: str
    """As rights are named: get, list, create, patch, delete."""
    place: Place
    code: int
    headers: Mapping[str, str]
    body: bytes
    is_testing: bool = False
    """Whether the request was to test the uid first."""

    @property
    def error(self) -> errors.ApiError:
        """Say it as an error of ours."""
        status = _status(self.body)
        said = _said(status, self.body)
        what = f"{self.verb} {self.place}: {self.code} {said}".rstrip()
        if self.code == HTTPStatus.TOO_MANY_REQUESTS:
            return errors.BusyError(what, self._after(status))
        if self.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return errors.UnreachableError(what, self._after(status))
        return self._lasting(status, what)

    def _lasting(self, status: _Status, what: str) -> errors.ApiError:
        match self.code:
            case HTTPStatus.NOT_FOUND if not self._is_about_an_object(status):
                return errors.UnservedError(f"{what}; {self._definition()}")
            case HTTPStatus.FORBIDDEN:
                return errors.ForbiddenError(f"{what}; {self._right()}")
            case HTTPStatus.UNPROCESSABLE_ENTITY if self._is_about_another(status):
                return errors.ConflictError(f"{what}; it is another object of that name")
            case _:
                error, advice = _PLAIN.get(self.code, (errors.RefusedError, ""))
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


_PLAIN: Final[dict[int, tuple[type[errors.ApiError], str]]] = {
    HTTPStatus.NOT_FOUND: (errors.AbsentError, ""),
    HTTPStatus.CONFLICT: (errors.ConflictError, ""),
    HTTPStatus.GONE: (errors.GoneError, "; begin anew"),
    HTTPStatus.UNAUTHORIZED: (
        errors.UnauthorizedError,
        "; the token or certificate is wrong or has expired: renew it",
    ),
}
"""What a code means by itself, and what would be right."""
