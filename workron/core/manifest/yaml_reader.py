"""Read the bytes of a file into documents: YAML with one or more documents, or JSON.

It never raises for the content: what is wrong becomes a problem of a document. Size, depth, number
of values and expansion by aliases are limited, so that a small file cannot exhaust its reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import yaml

from workron.core.manifest import yaml_scalars
from workron.core.manifest.problems import Document


class _UnreadableError(Exception):
    """The text cannot be read from this line on."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


# Numbers as texts: Python refuses to convert long ones, and their values are not needed here.
_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str)
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_ESCAPE: Final = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def split_json(text: str) -> list[tuple[int, str]] | None:
    """Return each JSON document with its first line number; None if the text is not JSON."""
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


_MERGE: Final = "<<"
_TWICE: Final = "is given twice, first in line {}; give it once"


@dataclass(slots=True)
class OpenCollection:
    """A list or a mapping that is being read. The keys and values of a mapping alternate."""

    line: int
    anchor: str | None
    nodes_before: int
    value: Any
    lines: Any
    """The line of each entry, as in `Document`."""
    step: Any
    """The last key, a text; of a list, the index of the next entry."""
    wants_key: bool
    height: int = 1
    _key_line: int = 0
    _is_merging: bool = False
    _merged: set[str] | None = None
    """Keys that `<<` has brought, and that may be given again."""
    _merge_line: int | None = None

    def begin_merge(self, line: int) -> str | None:
        """Take the key `<<`; return a problem with it, if any."""
        before, self._merge_line = self._merge_line, line
        self.step, self.wants_key, self._is_merging = _MERGE, False, True
        return _TWICE.format(before) + ", with a list of mappings" if before else None

    def add(self, value: Any, line: int) -> str | None:
        """Take the next key, entry, or value of the last key; return a problem with it, if any."""
        if self.wants_key:
            return self._begin(value, line)
        if type(self.step) is int:
            self.value.append(value)
            self.lines.append(line)
            self.step += 1
            return None
        self.wants_key = True
        if self._is_merging:
            self._is_merging = False
            return self._merge(value, line)
        self.value[self.step], self.lines[self.step] = value, self._key_line
        if self._merged:
            self._merged.discard(self.step)
        return None

    def _begin(self, key: Any, line: int) -> str | None:
        self._key_line, self.wants_key = line, False
        if isinstance(key, str):
            self.step = key
        else:
            self.step = str(key).lower() if isinstance(key, bool) else str(key)
            if not isinstance(key, int):
                return "a key is a text; write it in quotes"
        if self.step in self.value and self.step not in (self._merged or ()):
            return _TWICE.format(self.lines[self.step])
        return None

    def _merge(self, value: Any, line: int) -> str | None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            return "takes a mapping, or a list of mappings"
        problem = None
        self._merged = self._merged or set()
        for key, merged in ((k, v) for source in sources for k, v in source.items()):
            if key not in self.value:
                self.value[key], self.lines[key] = merged, line
                self._merged.add(key)
            elif key not in self._merged:
                # YAML keeps the earlier value, kubectl takes the merged one: neither is safe.
                problem = f"brings '{key}', which stands before it; put << first"
        return problem


MAX_DEPTH: Final = 64
MAX_NODES: Final = 1_000_000
MAX_BYTES: Final = 1536 * 1024
"""Size of one document: what etcd, and so a cluster, accepts as one object."""

_FREE_NODES: Final = 1000
_MAX_EXPANSION: Final = 100
"""How many times a document may grow by its aliases, once it has `_FREE_NODES` values."""


class _Anchored(NamedTuple):
    value: Any
    nodes: int = 1
    height: int = 0


class DocumentBuilder:
    """Builds one document from the events of the YAML parser."""

    def __init__(self, begins_at: int, first_line: int, line: int) -> None:
        self.document = Document(line=line)
        self.begins_at = begins_at
        self._first_line = first_line
        self._open: list[OpenCollection] = []
        self._anchors: dict[str, _Anchored] = {}
        self._nodes = self._aliased = 0
        # By class: an isinstance check for each event takes longer than parsing it.
        self._handlers: Mapping[type[yaml.Event], Callable[[Any, int], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._begin_collection,
            yaml.SequenceStartEvent: self._begin_collection,
            yaml.MappingEndEvent: self._end_collection,
            yaml.SequenceEndEvent: self._end_collection,
            yaml.AliasEvent: self._alias,
        }

    def feed(self, event: yaml.Event, kind: type[yaml.Event], start: Any) -> None:
        """Take one event; _UnreadableError at a limit."""
        if start.index - self.begins_at > MAX_BYTES:
            raise _too_long(self.document.line)
        if handle := self._handlers.get(kind):
            handle(event, start.line + self._first_line)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        text, is_plain = event.value, event.implicit[0]
        value, problem = yaml_scalars.read_scalar(text, event.tag, is_plain=is_plain)
        around = self._open[-1] if self._open else None
        if around is None or not around.wants_key:
            if problem is not None:
                self._report(problem, line)
            self._place(yaml_scalars.as_json(value), event.anchor, line)
        elif is_plain and text == _MERGE:
            self._report(around.begin_merge(line), line)
        else:
            self._place(value, event.anchor, line)
            self._report(problem, line)

    def _begin_collection(self, event: yaml.CollectionStartEvent, line: int) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise _too_deep(line)
        if event.tag not in yaml_scalars.CONTAINERS:
            self._report(yaml_scalars.unsupported_tag(event.tag), line)
        is_mapping = type(event) is yaml.MappingStartEvent
        start: tuple[Any, Any, Any] = ({}, {}, "") if is_mapping else ([], [], 0)
        self._open.append(
            OpenCollection(line, event.anchor, self._nodes, *start, wants_key=is_mapping)
        )

    def _end_collection(self, _: yaml.CollectionEndEvent, __: int) -> None:
        ended = self._open.pop()
        self.document.lines[id(ended.value)] = ended.lines
        nodes = self._nodes - ended.nodes_before + 1
        self._place(ended.value, ended.anchor, ended.line, nodes=nodes, height=ended.height)

    def _alias(self, event: yaml.AliasEvent, line: int) -> None:
        target = self._anchors.get(str(event.anchor))
        if target is None:
            self._report(f"*{event.anchor} points to no anchor that is complete before it", line)
            target = _Anchored(None)
        if len(self._open) + target.height > MAX_DEPTH:
            raise _too_deep(line)
        self._aliased += target.nodes
        self._count(target.nodes - 1, line)
        self._place(target.value, None, line, height=target.height)

    def _place(
        self, value: Any, anchor: str | None, line: int, *, nodes: int = 1, height: int = 0
    ) -> None:
        """Add a complete value to the collection around it."""
        self._count(1, line)
        if anchor is not None:
            self._anchors[anchor] = _Anchored(value, nodes, height)
        if not self._open:
            self.document.value, self.document.line = value, line
            return
        around = self._open[-1]
        if height >= around.height:
            around.height = height + 1
        problem = around.add(value, line)
        if problem is not None:
            self._report(problem, line)

    def _count(self, nodes: int, line: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            message = f"the document has more than {MAX_NODES:,} values, aliases expanded"
            raise _UnreadableError(line, message)
        if not self._aliased:
            return
        written = max(self._nodes - self._aliased, _FREE_NODES // _MAX_EXPANSION)
        if self._nodes > written * _MAX_EXPANSION:
            message = f"its aliases make the document more than {_MAX_EXPANSION} times as large"
            raise _UnreadableError(line, message)

    def _report(self, message: str | None, line: int) -> None:
        if message is not None:
            self.document.report(tuple(around.step for around in self._open), message, line)


def _too_long(line: int) -> _UnreadableError:
    message = (
        f"the document is longer than {MAX_BYTES:,} bytes, more than a cluster accepts as one "
        "object; use count or items for what repeats, or split it"
    )
    return _UnreadableError(line, message)


def _too_deep(line: int) -> _UnreadableError:
    return _UnreadableError(line, f"is nested more than {MAX_DEPTH} deep")


# The parser in C is ten times faster, but PyYAML may have been built without it.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_HINTS: Final = (
    (
        "mapping values are not allowed",
        "a text that has ': ' in it needs quotes, or the line is indented too far",
    ),
    ("cannot start any token", "quote a text that begins with this character"),
    ("did not find expected key", "look for a line that is indented differently, or a quote"),
    ("did not find expected '-'", "look for a line of the list that is indented differently"),
    ("expected ',' or", "a bracket is not closed, or a comma is missing"),
    ("alphabetic or numeric character", "quote a text that begins with '*' or '&'"),
    (
        "unknown escape character",
        "in double quotes write \\\\ for one \\, or use single quotes",
    ),
    ("unexpected end of stream", "a quote is not closed"),
    ("invalid Unicode character", "a character beyond U+FFFF takes two escapes, a pair"),
)


def read_documents(data: bytes) -> Iterator[Document]:
    """Return each document; if the text is broken, a last one that has only the problem."""
    try:
        text = _decode(data)
        for line, chunk in split_json(text) or [(1, text)]:
            yield from _documents(chunk, line)
    except _UnreadableError as error:
        broken = Document()
        broken.report((), str(error), error.line)
        yield broken


def _documents(text: str, first_line: int) -> Iterator[Document]:
    builder = DocumentBuilder(0, first_line, first_line)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            kind = type(event)
            start: Any = event.start_mark
            if kind is yaml.DocumentStartEvent:
                builder = DocumentBuilder(start.index, first_line, start.line + first_line)
            elif kind is yaml.DocumentEndEvent:
                if len(text[builder.begins_at : start.index].encode()) > MAX_BYTES:
                    raise _too_long(builder.document.line)
                yield builder.document
            else:
                builder.feed(event, kind, start)
    except yaml.YAMLError as error:
        raise _syntax_error(error, text, first_line) from error


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte {data[error.start]:#04x} is not UTF-8; save it as UTF-8"
        raise _UnreadableError(line, message) from error
    if found := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        name = f"U+{ord(found[0]):04X}"
        raise _UnreadableError(line, f"the character {name} is not allowed; remove it")
    return text


def _is_tab(text: str, mark: Any) -> bool:
    lines = text.split("\n")[mark.line : mark.line + 1]
    return any(line[mark.column : mark.column + 1] == "\t" for line in lines)


def _syntax_error(error: yaml.YAMLError, text: str, first_line: int) -> _UnreadableError:
    mark, words = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    line = (mark.line if mark else 0) + first_line
    hint = next((f"; {hint}" for part, hint in _HINTS if part in (words or "")), "")
    if mark and _is_tab(text, mark):
        hint = "; indent with spaces, not tabs"
    begun = getattr(error, "context_mark", None)
    if begun and begun.line + first_line < line:
        # Often the mistake is at the start of the part that the parser is in.
        words = f"{words}, {getattr(error, 'context', '')} from line {begun.line + first_line}"
    return _UnreadableError(line, f"is not YAML: {words or error}{hint}")
