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

from workron.core import errors


class ApiError(errors.WorkronError):
    """The API server could not do what was asked."""


class AccessError(ApiError):
    """It is not known where the API server is, or who we are to it."""


class PassingError(ApiError):
    """What may be over soon; `after` holds the seconds that the server asks us to wait."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class UnreachableError(PassingError):
    """No answer came, or the server is in trouble; what was asked may have been done or not."""


class BusyError(PassingError):
    """The server takes no more requests of us for now; it did nothing."""


class AbsentError(ApiError):
    """The object, or the namespace that it was to be made in, does not exist."""


class UnservedError(ApiError):
    """The server knows no such resource; nothing can be said of its objects."""


class ConflictError(ApiError):
    """An object of that name exists, or has changed, or is another one than was meant."""


class TakenError(ConflictError):
    """An object of that name is somebody else's; nobody but that one can make way."""


class GoneError(ApiError):
    """The server has forgotten where we were; what was read must be read anew."""


class ForbiddenError(ApiError):
    """The server knows us, and we may not do that."""


class UnauthorizedError(ApiError):
    """The server does not know us."""


class RefusedError(ApiError):
    """The request is wrong in itself; it will be refused again."""
