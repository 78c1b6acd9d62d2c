"""Output of commands as text that is safe to show in a terminal, a status or a page."""

from __future__ import annotations

import re
from typing import Final

_SEQUENCES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colors and cursor movement
    r"|\x1b[\]PX^_][^\x07\x1b]*(\x07|\x1b\\)?"  # titles, links and other sequences with text
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Every control character except tab and line feed, and changes of the writing direction."""

READ_BYTES: Final = 64 * 1024
"""How much of the end of an output to read in order to show its last lines."""


def text(output: bytes) -> str:
    """Decode output, without control characters and escape sequences."""
    return strip_control(output.decode(errors="replace"))


def strip_control(value: str) -> str:
    """Remove control characters and escape sequences."""
    return _CONTROLS.sub("", _SEQUENCES.sub("", value.replace("\r\n", "\n")))


def tail(output: bytes, limit_bytes: int) -> str:
    """Return the end of the text in at most `limit_bytes` bytes, cut between characters."""
    whole = text(output).encode()
    return whole[max(0, len(whole) - limit_bytes) :].decode(errors="ignore")


def line(value: str) -> str:
    """Put a text from outside on one line that is safe to show."""
    return " ".join(text(value.encode(errors="replace")).split())
