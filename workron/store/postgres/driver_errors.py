"""What asyncpg's errors mean in our terms, the cause kept.

Called by `database` for every verb, and by `schema` for a migration; the others that catch a
driver's error let it pass on purpose.
"""

from __future__ import annotations

import os
import re
import shlex
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
    # A connection that the server ends just when a statement goes out mixes the driver up.
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
"""All that a call on a connection can raise because of the database."""

_MIXED_UP: Final = frozenset({"26000", "42P05"})
"""A prepared statement is not there, or there already: the session is not that of its making."""

_NO_RIGHT: Final = "42501"
_CYCLE: Final = "WK003"
"""In whose detail are the uids of the runs."""

_BY_STATE: Final[Mapping[str, type[errors.WorkronError]]] = {
    "WK001": errors.SessionError,
    "WK002": errors.TokenError,
    _CYCLE: errors.CycleError,
    "WK004": errors.PermissionDeniedError,
    "53100": errors.StoreFullError,
    "25006": errors.StoreFullError,
    "55P03": errors.StoreBusyError,
    "57014": errors.StoreBusyError,
    **dict.fromkeys(_MIXED_UP, errors.StoreError),
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
    "the pooler in front of it mixes up prepared statements: let it be PgBouncer 1.21 or newer with"
    " max_prepared_statements above 0, or pool_mode = session"
)
_RIGHTS_ADVICE: Final = (
    "to work for a pool a role needs `SELECT workron.grant_worker('{role}')`, said by the owner of"
    " the schema `workron`; all else needs that owner"
)
_NAMES_IT: Final = "WORKRON_STORE"
"""The store of every command that is given no other."""

_IN_LOGIN: Final = re.compile(r"(?<=://)(?P<user>[^:/?#@]*):.*@")
_IN_QUERY: Final = re.compile(r"(?<=[?&]password=)[^&]*")


def is_transient(cause: BaseException) -> bool:
    """Whether the same call may go through now: it gave way to another transaction.

    A claim id that is taken was taken by this very call, repeated while its first try still ran;
    the next try finds what that took.
    """
    if isinstance(cause, asyncpg.UniqueViolationError):
        return bool(cause.constraint_name == "running_claim_key")
    return isinstance(cause, asyncpg.DeadlockDetectedError | asyncpg.SerializationError)


def translate(cause: BaseException, url: str, *, tried: str = "") -> errors.WorkronError:
    """Say in our terms what the database's answer, or its silence, to what we tried means."""
    state = getattr(cause, "sqlstate", None) or ""
    kind = _BY_STATE.get(state) or _BY_CLASS.get(state[:2])
    if kind is None:
        kind = errors.StoreError if _is_answer(cause) else errors.StoreUnreachableError
    if isinstance(cause, ValueError):
        # The driver could make nothing of the URL.
        kind = errors.StoreLoginError
    if state == _CYCLE:
        named = getattr(cause, "detail", None) or ""
        return errors.CycleError(str(cause), map(UUID, named.split()))
    if state.startswith("WK"):
        return kind(str(cause))
    what = str(cause) or type(cause).__name__
    if isinstance(cause, TimeoutError):
        what = "no answer in time"
    if state in _MIXED_UP:
        what = _POOLER_ADVICE
    if state == _NO_RIGHT:
        what = f"{what}: {_RIGHTS_ADVICE.format(role=role_in_url(url))}"
    return kind(
        f"{redact_url(url)}: tried {tried}: {what}" if tried else f"{redact_url(url)}: {what}"
    )


def _is_answer(cause: BaseException) -> bool:
    """Whether the database, or the driver, refused; a call that is repeated is refused again."""
    if isinstance(cause, asyncpg.InterfaceError):
        # The driver has one class for its misuse and for a connection that is gone.
        return not ("closed" in str(cause) or "closing" in str(cause))
    return isinstance(cause, asyncpg.PostgresError)


def role_in_url(url: str) -> str:
    """Name the role that a URL connects as; a word for it where the URL does not."""
    return parse.unquote(parse.urlsplit(url).username or "ROLE")


def migrate_hint(url: str) -> str:
    """Word the command that mends a schema, for a shell; without a URL that cannot be shown."""
    if os.environ.get(_NAMES_IT) == url:
        return "`workron migrate`"
    if redact_url(url) != url:
        return f"`workron migrate`, with {_NAMES_IT} set to this store"
    return f"`workron migrate --store {shlex.quote(url)}`"


def redact_url(url: str) -> str:
    """Show a URL to a person, without its password, also where it is not well-formed."""
    return _IN_QUERY.sub("***", _IN_LOGIN.sub(r"\g<user>:***@", url))
