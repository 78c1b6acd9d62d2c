"""Drawings of the tasks of a workflow: Mermaid for pages, a text tree for terminals.

The tasks must form a DAG. Upstreams that are not among them (other Jobs and Workflows) are drawn as
external.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from workron.core.verdict import Condition

if TYPE_CHECKING:
    from collections.abc import Sequence


_LINES: Final = 1_000


class TaskBox(NamedTuple):
    """One task: its name, its upstreams each with the `when` of the edge, its size if an array."""

    name: str
    upstreams: Sequence[tuple[str, Condition]] = ()
    size: int | None = None


class _Line(NamedTuple):
    """A line of the tree that is yet to be drawn."""

    name: str
    condition: Condition
    indent: str
    branch: str
    below: str


@dataclass(frozen=True, slots=True)
class _Graph:
    labels: dict[str, str]
    downstreams: dict[str, list[tuple[str, Condition]]]
    roots: list[str]


def mermaid(boxes: Sequence[TaskBox]) -> str:
    """Draw a flowchart. Boxes get generated ids, as a task may be named like a keyword (`end`)."""
    graph = _graph(boxes)
    ids = {name: f"t{at}" for at, name in enumerate(graph.labels)}
    lines = ["flowchart LR"]
    lines += [f'    {ids[name]}["{label}"]' for name, label in graph.labels.items()]
    for box in boxes:
        for upstream, condition in box.upstreams:
            when = "" if condition is Condition.SUCCEEDED else f"|{condition}|"
            lines.append(f"    {ids[upstream]} -->{when} {ids[box.name]}")
    return "\n".join(lines)


def tree(boxes: Sequence[TaskBox], *, lines: int = _LINES) -> str:
    """Draw downstreams below their upstreams, each task once in full, in at most `lines` lines."""
    graph = _graph(boxes)
    drawn: list[str] = []
    seen: set[str] = set()
    pending = [_Line(name, Condition.SUCCEEDED, "", "", "") for name in reversed(graph.roots)]
    while pending and len(drawn) < lines:
        line = pending.pop()
        drawn.append(line.indent + line.branch + _label(line, graph, is_known=line.name in seen))
        if line.name not in seen:
            seen.add(line.name)
            pending += reversed(_children(line, graph))
    if pending:
        unseen = len(graph.labels) - len(seen)
        drawn.append(f"(cut off after {lines:,} lines; {unseen:,} tasks are not shown)")
    return "\n".join(drawn)


def _graph(boxes: Sequence[TaskBox]) -> _Graph:
    labels = {box.name: box.name + _range(box.size) for box in boxes}
    downstreams: dict[str, list[tuple[str, Condition]]] = {}
    external: dict[str, str] = {}
    for box in boxes:
        for upstream, condition in box.upstreams:
            downstreams.setdefault(upstream, []).append((box.name, condition))
            if upstream not in labels:
                external[upstream] = f"{upstream} (external)"
    roots = [*external, *(box.name for box in boxes if not box.upstreams)]
    return _Graph(external | labels, downstreams, roots)


def _range(size: int | None) -> str:
    if size is None:
        return ""
    return f"[0..{size - 1}]" if size > 1 else "[0]"


def _label(line: _Line, graph: _Graph, *, is_known: bool) -> str:
    notes = [] if line.condition is Condition.SUCCEEDED else [f"when {line.condition}"]
    notes += ["shown above"] if is_known else []
    return graph.labels[line.name] + (f" ({', '.join(notes)})" if notes else "")


def _children(line: _Line, graph: _Graph) -> list[_Line]:
    downstreams = graph.downstreams.get(line.name, [])
    last = len(downstreams) - 1
    indent = line.indent + line.below
    return [
        _Line(name, condition, indent, *(("├── ", "│   ") if at < last else ("└── ", "    ")))
        for at, (name, condition) in enumerate(downstreams)
    ]
