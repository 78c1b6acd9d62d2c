"""The SQL files of this room, read once: named statements, each with its reason in the file.

A statement is known as `file.name`. Called by `transaction` and `connection`; no SQL text stands
in Python beyond pragmas and transaction control.
"""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FOLDER: Final = resources.files(__package__) / "sql"
_NAME: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def text(name: str) -> str:
    """Give the text of `file.statement`."""
    file, _, statement = name.partition(".")
    return of_file(file)[statement]


@cache
def of_file(file: str) -> Mapping[str, str]:
    """Give all statements of a file by name, in order."""
    content = (_FOLDER / f"{file}.sql").read_text("utf-8")
    _, *parts = _NAME.split(content)
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def split(script: str) -> Iterator[str]:
    """Part a migration into statements: `executescript` would commit before it began."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
