r"""JSON documents in a text that begins with `{`, prepared for the reader of YAML.

JSON is nearly YAML: what is not are several documents with nothing between them, and `\ud83d\ude00`
for one character, which is how most programs write it. Called by `text`.
"""

from __future__ import annotations

import json
import re
from typing import Final

# Numbers as texts: Python refuses to convert long ones, and nothing here looks at them.
_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str)
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_ESCAPE: Final = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def split(text: str) -> list[tuple[int, str]] | None:
    """Give each JSON document with the number of its first line; None if this is not JSON."""
    chunks = []
    line, end = 1, 0
    begin = _skip_blank(text, end)
    if not text.startswith("{", begin):
        return None
    while begin < len(text):
        line += text.count("\n", end, begin)
        try:
            _, end = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return None
        chunks.append((line, _ESCAPE.sub(_join_pair, text[begin:end])))
        line += text.count("\n", begin, end)
        begin = _skip_blank(text, end)
    return chunks


def _skip_blank(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _join_pair(escape: re.Match[str]) -> str:
    if not escape[1]:
        return escape[0]
    high, low = int(escape[1], 16), int(escape[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + low - 0xDC00:08x}"
