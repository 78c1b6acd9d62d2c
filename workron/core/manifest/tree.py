"""From YAML's events to plain values, one event at a time and never deeper than allowed.

PyYAML's own composer recurses, expands aliases without a bound and resolves scalars by other
rules; so only its scanner and parser are used. A file may have millions of events, so little is
done for each. Called by `text`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from workron.core.manifest import resolve
from workron.core.manifest.document import Document, Problem, UnreadableError
from workron.core.manifest.frame import MERGE, ListFrame, MappingFrame

MAX_DEPTH: Final = 64
MAX_NODES: Final = 1_000_000
MAX_BYTES: Final = 1536 * 1024
"""Of one document: what etcd, and so a cluster, takes as one object."""

_FREE_NODES: Final = 1000
_MAX_EXPANSION: Final = 100
"""How many times a document may grow by its aliases, once it is of some size."""


@dataclass(frozen=True, slots=True)
class _Anchored:
    value: Any
    nodes: int = 1
    height: int = 0


class Builder:
    """Takes the events of one stream and gives a document whenever one is complete."""

    def __init__(self, text: str, first_line: int) -> None:
        self._text = text
        self._first_line = first_line
        self._begin_document(0, first_line)
        # By the class itself: asking each event what it is an instance of takes longer than the
        # parser takes to make it.
        self._takers: Mapping[type[yaml.Event], Callable[[Any, int], Document | None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._begin_mapping,
            yaml.SequenceStartEvent: self._begin_list,
            yaml.MappingEndEvent: self._end_collection,
            yaml.SequenceEndEvent: self._end_collection,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._start_document,
            yaml.DocumentEndEvent: self._end_document,
        }

    def feed(self, event: yaml.Event) -> Document | None:
        """Take one event; raises UnreadableError where a limit is passed."""
        start: Any = event.start_mark
        take = self._takers.get(type(event))
        document = take(event, start.line + self._first_line) if take else None
        if start.index - self._begins_at > MAX_BYTES:
            raise _too_long(self._document.line)
        return document

    def _start_document(self, event: yaml.DocumentStartEvent, line: int) -> None:
        start: Any = event.start_mark
        self._begin_document(start.index, line)

    def _begin_document(self, index: int, line: int) -> None:
        self._document = Document(line=line)
        self._begins_at = index
        self._open: list[ListFrame | MappingFrame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._nodes = self._aliased = 0

    def _end_document(self, event: yaml.DocumentEndEvent, _: int) -> Document:
        start: Any = event.start_mark
        if len(self._text[self._begins_at : start.index].encode()) > MAX_BYTES:
            raise _too_long(self._document.line)
        return self._document

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        text, is_plain = event.value, event.implicit[0]
        value, problem = resolve.read(text, event.tag, is_plain=is_plain)
        frame = self._open[-1] if self._open else None
        if not (isinstance(frame, MappingFrame) and frame.wants_key):
            if problem is not None:
                self._report(problem, line)
            self._place(resolve.as_json(value), event.anchor, line)
        elif is_plain and text == MERGE:
            self._report(frame.begin_merge(line), line)
        else:
            self._place(value, event.anchor, line)
            self._report(problem, line)

    def _begin_mapping(self, event: yaml.MappingStartEvent, line: int) -> None:
        self._begin_collection(MappingFrame(line, event.anchor, self._nodes), event.tag)

    def _begin_list(self, event: yaml.SequenceStartEvent, line: int) -> None:
        self._begin_collection(ListFrame(line, event.anchor, self._nodes), event.tag)

    def _begin_collection(self, frame: ListFrame | MappingFrame, tag: str | None) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise _too_deep(frame.line)
        if tag not in resolve.CONTAINERS:
            self._report(resolve.no_meaning(tag), frame.line)
        self._open.append(frame)

    def _end_collection(self, _: yaml.CollectionEndEvent, __: int) -> None:
        frame = self._open.pop()
        self._document.lines[id(frame.value)] = frame.lines
        nodes = self._nodes - frame.nodes_before
        self._place(frame.value, frame.anchor, frame.line, nodes=nodes + 1, height=frame.height)

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
        """Put a complete value into what is open around it."""
        self._count(1, line)
        if anchor is not None:
            self._anchors[anchor] = _Anchored(value, nodes, height)
        if not self._open:
            self._document.value, self._document.line = value, line
            return
        frame = self._open[-1]
        if height >= frame.height:
            frame.height = height + 1
        problem = frame.add(value, line)
        if problem is not None:
            self._report(problem, line)

    def _count(self, nodes: int, line: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            message = f"the document has more than {MAX_NODES:,} values, aliases expanded"
            raise UnreadableError(Problem(line, message))
        if not self._aliased:
            return
        written = max(self._nodes - self._aliased, _FREE_NODES // _MAX_EXPANSION)
        if self._nodes > written * _MAX_EXPANSION:
            message = f"its aliases make the document more than {_MAX_EXPANSION} times as large"
            raise UnreadableError(Problem(line, message))

    def _report(self, message: str | None, line: int) -> None:
        if message is not None:
            self._document.report(tuple(frame.step for frame in self._open), message, line)


def _too_long(line: int) -> UnreadableError:
    message = (
        f"the document is longer than {MAX_BYTES:,} bytes, more than a cluster takes as one "
        "object; use count or items for what repeats, or split it"
    )
    return UnreadableError(Problem(line, message))


def _too_deep(line: int) -> UnreadableError:
    message = f"is nested more than {MAX_DEPTH} deep"
    return UnreadableError(Problem(line, message))
