"""The end of an output as text that a terminal, a status and a page can show as it is.

Called by `present` and by `workron.cli`.
"""

from __future__ import annotations

import re
from typing import Final

_SEQUENCES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b]*(\x07|\x1b\\)?"  # titles, links, and what else carries a text
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""All but tab and line feed, and what turns the direction of writing."""

READ_BYTES: Final = 64 * 1024
"""So much of the end of an output is looked at for the few lines that are shown of it."""


def text(output: bytes) -> str:
    """Decode what a command wrote, without anything that a terminal would obey."""
    return strip_control(output.decode(errors="replace"))


def strip_control(words: str) -> str:
    """Leave out of a text what a terminal would obey."""
    return _CONTROLS.sub("", _SEQUENCES.sub("", words.replace("\r\n", "\n")))


def tail(output: bytes, limit_bytes: int) -> str:
    """Give the end of the text, in at most so many bytes, cut between characters."""
    whole = text(output).encode()
    return whole[max(0, len(whole) - limit_bytes) :].decode(errors="ignore")


def line(words: str) -> str:
    """Put a text that somebody else wrote on one line that a terminal can show."""
    return " ".join(text(words.encode(errors="replace")).split())
