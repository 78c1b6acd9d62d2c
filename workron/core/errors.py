"""Every error that Workron raises, as one tree.

    WorkronError
    ├── InputError            what a person wrote is wrong: exit code 2
    │   ├── ManifestError     a document: carries every problem, each with its place
    │   ├── GraphError        a workflow whose tasks do not form a DAG
    │   │   └── CycleError        runs that wait for each other: says which
    │   └── NameTakenError    an unfinished run of that name has other content
    ├── NotFoundError         no job or workflow of that name
    ├── StateError            a transition that the table in `states` does not have
    └── StoreError            the database: which one, what was tried
        ├── StoreUnreachableError   it does not answer
        │   ├── StoreRefusedError   it answers, and lets nobody in by this URL
        │   └── StoreAwayError      it was asked for as long as it may be away: exit code 5
        ├── StoreBusyError          another process holds it
        ├── StoreFullError          no space, or read-only
        ├── StoreDataError          it refused a value
        ├── StoreRightsError        this role may not do that there
        ├── SchemaError             its schema is not one this program knows
        │   └── SchemaMissingError  it has none at all
        ├── TokenError              no pool admits workers by this token
        └── SessionError            the worker behind a session key is gone or was never there

Rooms above hang their own under the run; the operator's are in `workron_controller/api/errors.py`.

The message is for a person: what was wrong, where, and what would be right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID


class WorkronError(Exception):
    """The run: catch this to catch all that Workron raises on purpose."""


class InputError(WorkronError):
    """What a person wrote is wrong; nothing was done."""


class ManifestError(InputError):
    """One or more documents are wrong; `problems` holds a line for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class GraphError(InputError):
    """The tasks of a workflow do not form a DAG; `path` leads to where that is written."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


class CycleError(GraphError):
    """Roots that wait for each other; `uids` are some of those that were to be stored."""

    def __init__(self, message: str, uids: Iterable[UUID]) -> None:
        super().__init__(message)
        self.uids = frozenset(uids)


class NameTakenError(InputError):
    """An unfinished run of that name exists, with other content."""

    def __init__(self, kind: str, namespace: str, name: str) -> None:
        super().__init__(
            f"{kind} {namespace}/{name} is unfinished and has other content; "
            f"cancel it or let it end first, or give this one another name"
        )


class NotFoundError(WorkronError):
    """No job or workflow of that name is in the store."""


class StateError(WorkronError):
    """A transition that the table of states does not have."""


class StoreError(WorkronError):
    """The database could not do what was asked."""


class StoreUnreachableError(StoreError):
    """The database does not answer."""


class StoreLoginError(StoreUnreachableError):
    """Nobody gets in by this URL: a slip in it, or a server that is not ready for it yet."""


class StoreTimeoutError(StoreUnreachableError):
    """It was asked again and again, for as long as it may be away."""


class StoreBusyError(StoreError):
    """Another process holds the database."""


TRANSIENT: Final = (StoreUnreachableError, StoreBusyError)
"""What may be over soon: the same call may be answered then."""


class StoreFullError(StoreError):
    """The disk is full, or the file is read-only."""


class StoreDataError(StoreError):
    """The database refused a value; the same call will be refused again."""


class PermissionDeniedError(StoreError):
    """The role that this program connects as may not do what was asked."""


class SchemaError(StoreError):
    """The schema is not one that this program knows."""


class SchemaMissingError(SchemaError):
    """The database has no schema of Workron's at all."""


class TokenError(StoreError):
    """No pool admits workers by this token, or it has expired."""


class SessionError(StoreError):
    """The worker behind this session key was taken back, or never was."""
