"""What the fake says no with: objects of kind Status, worded as the real server words them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from tests.controller.fake_api.kinds import Json, Kind


class RefusedError(Exception):
    """The server does not do it."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details,
            "code": code,
        }


def _about(kind: Kind, name: str | None) -> Json:
    return {"name": name, "group": kind.resource.group, "kind": kind.resource.plural}


def absent(kind: Kind, name: str) -> RefusedError:
    """There is none of that name."""
    said = f'{kind.resource} "{name}" not found'
    return RefusedError(HTTPStatus.NOT_FOUND, "NotFound", said, **_about(kind, name))


def twin(kind: Kind, name: str) -> RefusedError:
    """There is one of that name."""
    said = f'{kind.resource} "{name}" already exists'
    return RefusedError(HTTPStatus.CONFLICT, "AlreadyExists", said, **_about(kind, name))


def conflict(kind: Kind, name: str, why: str) -> RefusedError:
    """A guard did not hold."""
    said = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return RefusedError(HTTPStatus.CONFLICT, "Conflict", said, **_about(kind, name))


def changed(kind: Kind, name: str) -> RefusedError:
    """The version in the body is an old one."""
    return conflict(kind, name, "the object has been modified; please apply your changes anew")


def invalid(kind: Kind, name: str, field: str, why: str) -> RefusedError:
    """A field has a value that it must not have."""
    said = f'{kind.name}.{kind.resource.group} "{name}" is invalid: {field}: {why}'
    cause = {"reason": "FieldValueInvalid", "message": why, "field": field}
    return RefusedError(
        HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", said, **_about(kind, name), causes=[cause]
    )


def failed_test() -> RefusedError:
    """A JSON patch tested what is not so; the server says no more than this."""
    said = "the server rejected our request due to an error in our request"
    return RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", said)


def bad(why: str) -> RefusedError:
    """The request makes no sense."""
    return RefusedError(HTTPStatus.BAD_REQUEST, "BadRequest", why)


def expired(why: str) -> RefusedError:
    """The server has forgotten what the request goes on from."""
    return RefusedError(HTTPStatus.GONE, "Expired", why)


def unknown() -> RefusedError:
    """Nobody is known by this token."""
    return RefusedError(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")
