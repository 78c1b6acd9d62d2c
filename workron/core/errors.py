"""Every error that Workron raises on purpose.

Packages above add their own below these; the controller's are in `workron_controller.kube.errors`.
A message is for a person: what is wrong, where, and what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID


class WorkronError(Exception):
    """Base of all errors that Workron raises on purpose."""

    exit_code: ClassVar = 1
    """With what a command exits that ends with this error."""


class InputError(WorkronError):
    """The input of a user is wrong; nothing was changed."""

    exit_code = 2


class ManifestError(InputError):
    """Manifests are wrong; `problems` has one line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class SpecError(InputError):
    """A spec that its model accepts cannot be run; `path` leads to the field that is wrong."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


class GraphError(SpecError):
    """The tasks of a workflow do not form a DAG."""


class CycleError(GraphError):
    """Runs wait for each other; `uids` are those of submitted objects in the cycle."""

    def __init__(self, message: str, uids: Iterable[UUID]) -> None:
        super().__init__(message)
        self.uids = frozenset(uids)


class NameTakenError(InputError):
    """An unfinished run has that name and other content."""

    def __init__(self, kind: str, namespace: str, name: str) -> None:
        super().__init__(
            f"{kind} {namespace}/{name} is unfinished and has other content; "
            "cancel it, wait until it ends, or use another name"
        )


class NotFoundError(WorkronError):
    """No job or workflow of that name is in the store."""

    exit_code = 4


class StateError(WorkronError):
    """The job is in a state that does not allow this."""

    exit_code = 2


class StoreError(WorkronError):
    """The database could not do what was asked."""

    exit_code = 3


class StoreUnreachableError(StoreError):
    """The database does not answer."""


class StoreLoginError(StoreUnreachableError):
    """The database rejects the login: the URL is wrong, or the server is still starting."""


class StoreTimeoutError(StoreUnreachableError):
    """The database did not answer within the retry limit."""


class StoreBusyError(StoreError):
    """Another process holds the lock of the database."""


TRANSIENT: Final = (StoreUnreachableError, StoreBusyError)
"""Errors after which the same call may succeed."""


class StoreFullError(StoreError):
    """The disk is full, or the database is read-only."""


class StoreDataError(StoreError):
    """The database rejected a value, and would reject it again."""


class PermissionDeniedError(StoreError):
    """The database role of this program may not do what was asked."""


class SchemaError(StoreError):
    """The schema has a version that this program does not support."""


class SchemaMissingError(SchemaError):
    """The database has no Workron schema yet."""


class TokenError(StoreError):
    """The token is unknown, or it has expired."""


class SessionError(StoreError):
    """The session is unknown, or the worker was reaped."""
