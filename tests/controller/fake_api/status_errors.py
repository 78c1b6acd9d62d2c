"""Errors of the API server: objects of kind Status, with the messages of a real server."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from tests.controller.fake_api.kinds import Json, Kind


class StatusError(Exception):
    """The server refuses a request."""

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


def _details(kind: Kind, name: str | None) -> Json:
    return {"name": name, "group": kind.resource.group, "kind": kind.resource.plural}


def not_found(kind: Kind, name: str) -> StatusError:
    message = f'{kind.resource} "{name}" not found'
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", message, **_details(kind, name))


def already_exists(kind: Kind, name: str) -> StatusError:
    message = f'{kind.resource} "{name}" already exists'
    return StatusError(HTTPStatus.CONFLICT, "AlreadyExists", message, **_details(kind, name))


def conflict(kind: Kind, name: str, cause: str) -> StatusError:
    """Return the error for a precondition that does not hold."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {cause}'
    return StatusError(HTTPStatus.CONFLICT, "Conflict", message, **_details(kind, name))


def modified(kind: Kind, name: str) -> StatusError:
    """Return the error for an outdated resource version."""
    cause = "the object has been modified; please apply your changes to the latest version"
    return conflict(kind, name, cause)


def invalid(kind: Kind, name: str, field: str, cause: str) -> StatusError:
    """Return the error for an invalid value of a field."""
    message = f'{kind.name}.{kind.resource.group} "{name}" is invalid: {field}: {cause}'
    causes = [{"reason": "FieldValueInvalid", "message": cause, "field": field}]
    details = _details(kind, name)
    return StatusError(
        HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, **details, causes=causes
    )


def failed_test() -> StatusError:
    """Return the error for a failed test of a JSON patch, which has no details."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message)


def bad_request(message: str) -> StatusError:
    return StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def expired(message: str) -> StatusError:
    """Return the error for a version or a token that the server has dropped."""
    return StatusError(HTTPStatus.GONE, "Expired", message)


def unauthorized() -> StatusError:
    return StatusError(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")
