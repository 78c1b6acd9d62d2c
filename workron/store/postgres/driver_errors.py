"""Translating asyncpg's errors into `workron.core.errors`, and URLs into text for people."""

from __future__ import annotations

import os
import re
import shlex
import socket
from typing import TYPE_CHECKING, Final
from urllib import parse
from uuid import UUID

import asyncpg

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping


DRIVER: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # Raised when the server closes a connection just as a statement is sent.
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
"""Errors that a call on a connection can raise because of the database."""

CONNECT: Final = "connect to"
MIGRATE: Final = "migrate"

_POOLER_STATES: Final = frozenset({"26000", "42P05"})
"""A prepared statement is unknown or exists: a pooler has switched the server session."""

_NO_RIGHT: Final = "42501"
_CYCLE: Final = "WK003"
"""Its detail lists the uids of the runs."""

_BY_STATE: Final[Mapping[str, type[errors.WorkronError]]] = {
    "WK001": errors.SessionError,
    "WK002": errors.TokenError,
    _CYCLE: errors.CycleError,
    "WK004": errors.PermissionDeniedError,
    "53100": errors.StoreFullError,
    "25006": errors.StoreFullError,
    "55P03": errors.StoreBusyError,
    "57014": errors.StoreBusyError,
    **dict.fromkeys(_POOLER_STATES, errors.StoreError),
    "58030": errors.StoreUnreachableError,
    _NO_RIGHT: errors.PermissionDeniedError,
}
_BY_CLASS: Final[Mapping[str, type[errors.WorkronError]]] = {
    "08": errors.StoreUnreachableError,
    "22": errors.StoreDataError,
    "23": errors.StoreDataError,
    "28": errors.StoreLoginError,
    "3D": errors.StoreLoginError,
    "3F": errors.SchemaError,
    "40": errors.StoreBusyError,
    "42": errors.SchemaError,
    "53": errors.StoreBusyError,
    "54": errors.StoreDataError,
    "57": errors.StoreUnreachableError,
}

_POOLER_ADVICE: Final = (
    "the pooler in front of it does not support prepared statements: use PgBouncer 1.21 or newer"
    " with max_prepared_statements above 0, or pool_mode = session"
)
_ADVICE: Final[Mapping[str, str]] = {
    "28P01": "check the user and the password in the URL, or set PGPASSWORD",
    "28000": "check the user in the URL, and pg_hba.conf of the server",
    "3D000": "check the name in the URL, or create the database with `createdb`",
    "53300": "end other clients, or raise max_connections of the server",
    "53100": "free space on the disk of the server",
    "25006": "use the URL of a primary server that is writable",
    "57P03": "wait until the server has started",
}
_RIGHTS_ADVICE: Final = (
    "a worker's role needs `SELECT workron.grant_worker('{role}')`, run by the owner of the schema"
    " `workron`; everything else needs that owner"
)
_STORE_VARIABLE: Final = "WORKRON_STORE"
"""The environment variable with the default store."""

_IN_LOGIN: Final = re.compile(r"(?<=://)(?P<user>[^:/?#@]*):.*@")
_IN_QUERY: Final = re.compile(r"(?<=[?&]password=)[^&]*")


def is_transient(cause: BaseException) -> bool:
    """Return whether the same call may succeed now: it lost against another transaction.

    A duplicate claim id was inserted by this very call, repeated while its first try still ran; the
    next try finds those claims.
    """
    if isinstance(cause, asyncpg.UniqueViolationError):
        return bool(cause.constraint_name == "running_claim_key")
    return isinstance(cause, asyncpg.DeadlockDetectedError | asyncpg.SerializationError)


def translate(cause: BaseException, url: str, *, action: str = "") -> errors.WorkronError:
    """Translate an error of the driver, or a missing answer; `action` is what could not be done."""
    state = getattr(cause, "sqlstate", None) or ""
    kind = _BY_STATE.get(state) or _BY_CLASS.get(state[:2])
    if kind is None:
        kind = errors.StoreError if _is_answer(cause) else errors.StoreUnreachableError
    if isinstance(cause, ValueError):
        # The driver cannot parse the URL.
        kind = errors.StoreLoginError
    if state == _CYCLE:
        # Only the message: the text of the error also has the detail, which is for programs.
        named = getattr(cause, "detail", None) or ""
        return errors.CycleError(cause.args[0], map(UUID, named.split()))
    if state.startswith("WK"):
        return kind(str(cause))
    what = _POOLER_ADVICE if state in _POOLER_STATES else _describe(cause)
    if state in _ADVICE:
        what = f"{what}; {_ADVICE[state]}"
    elif state == _NO_RIGHT:
        what = f"{what}: {_RIGHTS_ADVICE.format(role=role_in_url(url))}"
    elif action == CONNECT and kind is errors.StoreUnreachableError:
        what += _server_hint(cause, url)
    where = f"cannot {action} {redact_url(url)}" if action else redact_url(url)
    return kind(f"{where}: {what}")


def _describe(cause: BaseException) -> str:
    what = str(cause) or type(cause).__name__
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, socket.gaierror):
        return "the name of the host is not known"
    if isinstance(cause, OSError) and "Connect call failed" in what:
        return "connection refused"
    if isinstance(cause, ValueError) and "invalid literal for int" in what:
        return "the port in the URL must be a number"
    if isinstance(cause, FileNotFoundError):
        return "no server listens on this socket"
    return what


def _server_hint(cause: BaseException, url: str) -> str:
    if isinstance(cause, socket.gaierror):
        return "; check the host in the URL"
    parts = parse.urlsplit(url)
    place = re.fullmatch(r"(?:.*@)?([\w.-]+)(?::(\d+))?", parts.netloc)
    if place is None:
        # A socket, or several hosts.
        return ". Is the server running?"
    port = f" -p {place[2]}" if place[2] else ""
    return f". Is the server running? Try: pg_isready -h {place[1]}{port}"


def _is_answer(cause: BaseException) -> bool:
    """Return whether the database or the driver refused the call, and would do so again."""
    if isinstance(cause, asyncpg.InterfaceError):
        # The driver has one class for its misuse and for a lost connection.
        return not ("closed" in str(cause) or "closing" in str(cause))
    return isinstance(cause, asyncpg.PostgresError)


def role_in_url(url: str) -> str:
    """Return the role that a URL connects as, or a placeholder."""
    return parse.unquote(parse.urlsplit(url).username or "ROLE")


def migrate_hint(url: str) -> str:
    """Return the shell command that migrates a store, without a password."""
    if os.environ.get(_STORE_VARIABLE) == url:
        return "`workron migrate`"
    if redact_url(url) != url:
        return f"`workron migrate`, with {_STORE_VARIABLE} set to this store"
    return f"`workron migrate --store {shlex.quote(url)}`"


def redact_url(url: str) -> str:
    """Return a URL without its password, even if it is malformed."""
    return _IN_QUERY.sub("***", _IN_LOGIN.sub(r"\g<user>:***@", url))
