"""Translating sqlite3's errors into `workron.core.errors`."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping


REFUSED: Final = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    TypeError,
    UnicodeEncodeError,
    ValueError,
    RecursionError,
)
"""Errors for a value that SQLite or JSON cannot store."""

_PRIMARY_CODE: Final = 0xFF
_KINDS: Final[Mapping[int, type[errors.StoreError]]] = {
    sqlite3.SQLITE_BUSY: errors.StoreBusyError,
    sqlite3.SQLITE_LOCKED: errors.StoreBusyError,
    sqlite3.SQLITE_FULL: errors.StoreFullError,
    sqlite3.SQLITE_READONLY: errors.StoreFullError,
    sqlite3.SQLITE_CONSTRAINT: errors.StoreDataError,
    sqlite3.SQLITE_TOOBIG: errors.StoreDataError,
    sqlite3.SQLITE_MISMATCH: errors.StoreDataError,
    sqlite3.SQLITE_RANGE: errors.StoreDataError,
    sqlite3.SQLITE_CANTOPEN: errors.StoreUnreachableError,
    sqlite3.SQLITE_NOTADB: errors.StoreUnreachableError,
    sqlite3.SQLITE_CORRUPT: errors.StoreUnreachableError,
    sqlite3.SQLITE_IOERR: errors.StoreUnreachableError,
    sqlite3.SQLITE_PERM: errors.StoreUnreachableError,
    sqlite3.SQLITE_AUTH: errors.StoreUnreachableError,
}
_ADVICE: Final[Mapping[int, str]] = {
    sqlite3.SQLITE_BUSY: "another process is writing to it; wait for it, or stop it",
    sqlite3.SQLITE_LOCKED: "another process is writing to it; wait for it, or stop it",
    sqlite3.SQLITE_FULL: "no space left on the disk; free some, or use a store on another disk",
    sqlite3.SQLITE_READONLY: "the file or its directory is read-only; both must be writable",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database; name another file, or a new one",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a backup, or name a new file",
}


def translate(cause: Exception, place: str) -> Exception:
    """Translate an error of SQLite; other errors are returned unchanged."""
    if isinstance(cause, sqlite3.Error):
        return _translate(cause, place)
    if isinstance(cause, (OverflowError, ValueError, RecursionError)):
        return errors.StoreDataError(f"{place}: a value cannot be stored: {cause}")
    return cause


def code_of(cause: sqlite3.Error) -> int:
    """Return the primary result code of an error."""
    return getattr(cause, "sqlite_errorcode", 0) & _PRIMARY_CODE


def _translate(cause: sqlite3.Error, place: str) -> errors.StoreError:
    code = code_of(cause)
    kind = _KINDS.get(code)
    if kind is None:
        data = isinstance(cause, REFUSED)
        kind = errors.StoreDataError if data else errors.StoreError
    advice = _open_advice(place) if code == sqlite3.SQLITE_CANTOPEN else _ADVICE.get(code)
    return kind(f"{place}: {cause}" + (f": {advice}" if advice else ""))


def _open_advice(place: str) -> str:
    path = Path(place)
    if path.is_dir():
        return "it is a directory; name a file in it"
    if not path.parent.is_dir():
        return f"the directory {path.parent} does not exist; make it first"
    return "the file and its directory must be readable and writable"
