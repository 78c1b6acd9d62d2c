"""A workflow's tasks drawn for people: Mermaid for a page, a text tree for a terminal.

Called by `workron graph` with tasks that `core.graph` has checked. Upstreams that are no task of
the drawing (other Jobs, other Workflows) are drawn as what they are: outside.
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


class _Twig(NamedTuple):
    """A line of the tree that is still to be written."""

    name: str
    condition: Condition
    indent: str
    branch: str
    below: str


@dataclass(frozen=True, slots=True)
class _Grove:
    labels: dict[str, str]
    downstreams: dict[str, list[tuple[str, Condition]]]
    tops: list[str]


def mermaid(boxes: Sequence[TaskBox]) -> str:
    """Draw a flowchart; boxes have made-up ids, as a task may well be named `end`."""
    grove = _plant(boxes)
    ids = {name: f"t{at}" for at, name in enumerate(grove.labels)}
    lines = ["flowchart LR"]
    lines += [f'    {ids[name]}["{label}"]' for name, label in grove.labels.items()]
    for box in boxes:
        for upstream, condition in box.upstreams:
            when = "" if condition is Condition.SUCCEEDED else f"|{condition}|"
            lines.append(f"    {ids[upstream]} -->{when} {ids[box.name]}")
    return "\n".join(lines)


def tree(boxes: Sequence[TaskBox], *, lines: int = _LINES) -> str:
    """Draw downstreams under their upstreams, each task once in full, in at most so many lines."""
    grove = _plant(boxes)
    drawn: list[str] = []
    seen: set[str] = set()
    twigs = [_Twig(name, Condition.SUCCEEDED, "", "", "") for name in reversed(grove.tops)]
    while twigs and len(drawn) < lines:
        twig = twigs.pop()
        drawn.append(twig.indent + twig.branch + _label(twig, grove, is_known=twig.name in seen))
        if twig.name not in seen:
            seen.add(twig.name)
            twigs += reversed(_below(twig, grove))
    if twigs:
        unseen = len(grove.labels) - len(seen)
        drawn.append(f"(cut off after {lines:,} lines; {unseen:,} tasks are not shown)")
    return "\n".join(drawn)


def _plant(boxes: Sequence[TaskBox]) -> _Grove:
    labels = {box.name: box.name + _range(box.size) for box in boxes}
    downstreams: dict[str, list[tuple[str, Condition]]] = {}
    outside: dict[str, str] = {}
    for box in boxes:
        for upstream, condition in box.upstreams:
            downstreams.setdefault(upstream, []).append((box.name, condition))
            if upstream not in labels:
                outside[upstream] = f"{upstream} (outside)"
    tops = [*outside, *(box.name for box in boxes if not box.upstreams)]
    return _Grove(outside | labels, downstreams, tops)


def _range(size: int | None) -> str:
    if size is None:
        return ""
    return f"[0..{size - 1}]" if size > 1 else "[0]"


def _label(twig: _Twig, grove: _Grove, *, is_known: bool) -> str:
    notes = [] if twig.condition is Condition.SUCCEEDED else [f"when {twig.condition}"]
    notes += ["shown above"] if is_known else []
    return grove.labels[twig.name] + (f" ({', '.join(notes)})" if notes else "")


def _below(twig: _Twig, grove: _Grove) -> list[_Twig]:
    downstreams = grove.downstreams.get(twig.name, [])
    last = len(downstreams) - 1
    indent = twig.indent + twig.below
    return [
        _Twig(name, condition, indent, *(("├── ", "│   ") if at < last else ("└── ", "    ")))
        for at, (name, condition) in enumerate(downstreams)
    ]
