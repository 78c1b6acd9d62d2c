"""Migrations in both dialects: reading the numbered files, and the decision.

Pure but for reading the package's own files. Called by each dialect's `migrate`, which takes the
lock, runs the text and records it. The version of a schema is its highest migration number.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.resources.abc import Traversable


_FILE_NAME: Final = re.compile(r"(?P<number>\d{4})_[a-z0-9_]+\.sql")
_HEADER: Final = re.compile(r"-- compatible: (?P<answer>yes|no)\n")


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file of this program."""

    number: int
    name: str
    text: str
    checksum: str
    is_compatible: bool
    """Whether the program of one number less still works on the schema that it leaves."""


@dataclass(frozen=True, slots=True)
class Applied:
    """One row of a database's `migration` table."""

    number: int
    name: str
    checksum: str
    is_compatible: bool


def read_migrations(folder: Traversable) -> list[Migration]:
    """Read a dialect's migrations in order. SchemaError when a file is not as it must be."""
    files = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    known = [_parse(file.name, file.read_text("utf-8")) for file in files]
    known.sort(key=lambda migration: migration.number)
    if [migration.number for migration in known] != list(range(1, len(known) + 1)):
        names = ", ".join(migration.name for migration in known)
        raise errors.SchemaError(f"migrations must be numbered 0001, 0002, ...; found: {names}")
    return known


def pending_migrations(known: Sequence[Migration], applied: Sequence[Applied]) -> list[Migration]:
    """Answer what is still to run. SchemaError when the database is not one of this program's."""
    done = {row.number: row for row in applied}
    if sorted(done) != list(range(1, len(done) + 1)):
        numbers = ", ".join(map(str, sorted(done)))
        raise errors.SchemaError(f"the schema has a gap: it records the migrations {numbers}")
    for migration in known[: len(done)]:
        _check_unchanged(migration, done[migration.number])
    _check_age(len(known), [done[number] for number in sorted(done)])
    return list(known[len(done) :])


def _parse(name: str, text: str) -> Migration:
    match = _FILE_NAME.fullmatch(name)
    if match is None:
        raise errors.SchemaError(f"{name}: a migration is named like 0001_create_tables.sql")
    header = _HEADER.match(text)
    if header is None:
        raise errors.SchemaError(f"{name}: the first line must be '-- compatible: yes' or 'no'")
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return Migration(int(match["number"]), name, text, checksum, header["answer"] == "yes")


def _check_unchanged(migration: Migration, applied: Applied) -> None:
    if migration.checksum != applied.checksum:
        raise errors.SchemaError(
            f"{migration.name} is not the file that made this schema ({applied.name}, checksum"
            f" {applied.checksum[:12]}, here {migration.checksum[:12]}): a migration that was"
            " applied must stay as it was; a change is a new file"
        )


def _check_age(version: int, applied: Sequence[Applied]) -> None:
    newer = applied[version:]
    if len(newer) > 1 or any(not row.is_compatible for row in newer):
        raise errors.SchemaError(
            f"the schema has version {len(applied)} and this program knows {version}: it works"
            " with a schema at most one version newer, and only if that one is marked compatible;"
            " install a newer workron"
        )
