"""The SQL files of this room: functions that `migrate` installs, and queries that the doors run.

Called by `functions` and by the doors; no SQL text stands in Python beyond what opens and migrates.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Final

_FOLDER: Final = resources.files(__package__) / "sql"
_DEFINITION: Final = "CREATE OR REPLACE FUNCTION"


@cache
def _read_all() -> dict[str, str]:
    return {
        file.name.removesuffix(".sql"): file.read_text()
        for file in sorted(_FOLDER.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".sql")
    }


def query(verb: str) -> str:
    """Give the text of a verb that is a plain statement."""
    return _read_all()[verb]


@cache
def call(verb: str, arguments: int) -> str:
    """Give the statement that calls a verb which is a function."""
    given = ", ".join(f"${number}" for number in range(1, arguments + 1))
    return f"SELECT * FROM workron.{verb}({given})"  # noqa: S608 - the verb is one of ours


def functions() -> dict[str, str]:
    """Give the verbs that are functions in the database, by name."""
    return {verb: text for verb, text in _read_all().items() if _DEFINITION in text}


def functions_digest() -> str:
    """Tell one set of functions from another."""
    return hashlib.sha256("".join(functions().values()).encode()).hexdigest()
