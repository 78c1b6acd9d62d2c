"""The one seam at which asyncpg's errors become ours, the cause kept.

Called by `database`; nothing else in this room catches a driver's error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib import parse

import asyncpg

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

RETRIED: Final = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
"""The database gave way to another transaction: the same call may go through now."""

DRIVER: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
"""All that a call on a connection can raise because of the database."""

_BY_STATE: Final[Mapping[str, type[errors.WorkronError]]] = {
    "WK001": errors.SessionError,
    "WK002": errors.SessionError,
    "WK003": errors.GraphError,
    "53100": errors.StoreFullError,
    "25006": errors.StoreFullError,
    "55P03": errors.StoreBusyError,
    "57014": errors.StoreBusyError,
}
_BY_CLASS: Final[Mapping[str, type[errors.WorkronError]]] = {
    "08": errors.StoreUnreachableError,
    "22": errors.StoreDataError,
    "23": errors.StoreDataError,
    "28": errors.StoreUnreachableError,
    "3D": errors.StoreUnreachableError,
    "3F": errors.SchemaError,
    "42": errors.SchemaError,
    "53": errors.StoreBusyError,
    "54": errors.StoreDataError,
    "57": errors.StoreUnreachableError,
}


def translate(cause: BaseException, url: str) -> errors.WorkronError:
    """Say in our terms what the database's answer, or its silence, means."""
    state = getattr(cause, "sqlstate", None) or ""
    kind = _BY_STATE.get(state) or _BY_CLASS.get(state[:2])
    if kind is None:
        unknown = isinstance(cause, asyncpg.PostgresError)
        kind = errors.StoreError if unknown else errors.StoreUnreachableError
    if state.startswith("WK"):
        return kind(str(cause))
    what = str(cause) or type(cause).__name__
    return kind(f"{shown(url)}: {what}")


def shown(url: str) -> str:
    """Show a URL to a person, without its password."""
    parts = parse.urlsplit(url)
    if parts.password is None:
        return url
    hidden = parts.netloc.replace(f":{parts.password}@", ":***@")
    return parts._replace(netloc=hidden).geturl()
