"""Points in time as RFC 3339 writes them, with a zone, kept in UTC.

Used for `startAfter` and for the times in a status.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from workron.core import form
from workron.core.model import record

_FORM: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])"
)
"""In capitals and with a zone that there may be: an API server takes others, and then can neither
change that object nor have its status written, since its own rules read no such time."""
_EXAMPLE: Final = "write it like 2026-01-31T08:00:00Z"


def parse(text: str) -> datetime:
    """Read an RFC 3339 time with a zone; raises a refusal in words."""
    if not _FORM.fullmatch(text):
        raise record.refusal(f"{form.shown(text)} is not a time with date and zone; {_EXAMPLE}")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise record.refusal(f"{form.shown(text)} is not on the calendar; {_EXAMPLE}") from error


def render(moment: datetime) -> str:
    """Write a time in UTC so that `parse` reads the same."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _read(value: object) -> datetime:
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    raise record.refusal(f"this is not a time with date and zone; {_EXAMPLE}")


Moment = Annotated[
    datetime,
    BeforeValidator(_read),
    PlainSerializer(render),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "pattern": f"^{_FORM.pattern}$",
            "maxLength": len("2026-01-31T08:00:00.123456789+00:00"),
        }
    ),
]
