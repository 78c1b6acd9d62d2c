"""The text that COPY reads: a line for each row, a tab between two values. Called by `rows`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

NULL: Final = "\\N"
PAUSE: Final = ""
"""In the place of a row: there is none yet, and whoever sends them may look after the server."""


def line(*values: Any) -> str:
    """Give a row."""
    return "\t".join(map(_field, values)) + "\n"


def escaped(text: str) -> str:
    """Give a text as it stands within a row."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _field(value: Any) -> str:
    if value is None:
        return NULL
    # Its zone may be of fractions of a minute, which PostgreSQL does not read.
    return escaped(str(value.astimezone(UTC) if isinstance(value, datetime) else value))
