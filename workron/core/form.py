"""The forms of single texts: what a name, a variable or a command must look like.

Each is said here once and in Python alone: the models carry it into pydantic and into JSON schema,
the worker and the command line ask it directly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

ARGUMENT_BYTES: Final = 128 * 1024 - 1
"""Linux takes no longer string, its closing NUL not counted, as an argument of a program."""

LABEL_PATTERN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"

_SHOWN: Final = 60
_UNCARRIABLE: Final = re.compile("[\0\ud800-\udfff]")
_LABEL_SAYS: Final = "lowercase letters, digits and '-', a letter or digit at both ends"
_RESERVED: Final = "WORKRON_"


def shown(value: str) -> str:
    """Quote a value for a message, shortened, in printable characters."""
    return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")


def unfit_character(value: str) -> str | None:
    """Name the first character that neither a command nor a database can carry."""
    found = _UNCARRIABLE.search(value)
    if found is None:
        return None
    what = "a NUL character" if found[0] == "\0" else "half of a surrogate pair"
    return f"has {what} at position {found.start()}; leave it out or encode it"


@dataclass(frozen=True, slots=True)
class Form:
    """What a string must look like; `pattern` matches the whole and is RE2 as well."""

    says: str
    limit: int
    """In bytes of UTF-8."""
    pattern: str | None = None

    def problem(self, value: str) -> str | None:
        """Say in words what is wrong with a value; None if nothing is."""
        if problem := unfit_character(value):
            return problem
        size = len(value) if value.isascii() else len(value.encode())
        if size > self.limit:
            return f"is {size:,} bytes long; at most {self.limit:,} are allowed"
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            return f"{shown(value)} is not {self.says}"
        return None


LABEL: Final = Form(f"a name: {_LABEL_SAYS}", 63, LABEL_PATTERN)
POOL_NAME: Final = Form(f"the name of a pool: {_LABEL_SAYS}", 52, LABEL_PATTERN)
ENV_NAME: Final = Form(
    "the name of an environment variable: letters, digits and '_', no digit first",
    255,
    r"[A-Za-z_][A-Za-z0-9_]*",
)
ENV_VALUE: Final = Form("a value", 128_000)
ARGUMENT: Final = Form("an argument", ARGUMENT_BYTES)
COMMAND: Final = Form("a command: it is blank", ARGUMENT_BYTES, r"[\s\S]*\S[\s\S]*")
PATH: Final = Form("a path: it is empty", 4095, r"[\s\S]+")


def reservation(name: str) -> str | None:
    """Say that the name of a variable is the system's, if it is."""
    if not name.startswith(_RESERVED):
        return None
    return f"{shown(name)} is reserved: names in {_RESERVED} are set for each attempt"
