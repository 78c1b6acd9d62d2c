"""From the bytes of one file to its documents, whatever the bytes are.

Reads YAML of several documents and JSON. Never raises for what is in the bytes: what is wrong is
a problem of a document. Called by `read`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from workron.core.manifest import json_stream, tree
from workron.core.manifest.document import Document, Problem, UnreadableError

# The parser in C is ten times faster; a PyYAML that was built without it has only the other.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_HINTS: Final = (
    (
        "mapping values are not allowed",
        "a text that has ': ' in it needs quotes, or the line is indented too far",
    ),
    ("cannot start any token", "indent with spaces, not tabs; a text that begins so needs quotes"),
    ("did not find expected key", "look for a line that is indented differently, or a quote"),
    ("unexpected end of stream", "a quote is not closed"),
    ("invalid Unicode character", "a character beyond U+FFFF takes two escapes, a pair"),
)


def documents(data: bytes) -> Iterator[Document]:
    """Give each document; where the text is broken, a last one that has only the problem."""
    try:
        text = _decode(data)
        for line, chunk in json_stream.split(text) or [(1, text)]:
            yield from _documents(chunk, line)
    except UnreadableError as error:
        broken = Document()
        broken.report((), error.problem.message, error.problem.line)
        yield broken


def _documents(text: str, first_line: int) -> Iterator[Document]:
    builder = tree.Builder(text, first_line)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            document = builder.feed(event)
            if document is not None:
                yield document
    except yaml.YAMLError as error:
        raise UnreadableError(_syntax_problem(error, first_line)) from error


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = Problem(line, f"byte {data[error.start]:#04x} is not UTF-8; save it as UTF-8")
        raise UnreadableError(problem) from error
    if found := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        name = f"U+{ord(found[0]):04X}"
        raise UnreadableError(Problem(line, f"the character {name} is not allowed; leave it out"))
    return text


def _syntax_problem(error: yaml.YAMLError, first_line: int) -> Problem:
    mark, words = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    line = (mark.line if mark else 0) + first_line
    hint = next((f"; {hint}" for part, hint in _HINTS if part in (words or "")), "")
    begun = getattr(error, "context_mark", None)
    if begun and begun.line + first_line < line:
        # Often the mistake is where the part began that the parser is still in.
        words = f"{words}, {getattr(error, 'context', '')} from line {begun.line + first_line}"
    return Problem(line, f"is not YAML: {words or error}{hint}")
