"""Drawings of the tasks of a workflow: Mermaid for pages, a text tree for terminals.

The tasks must form a DAG. Upstreams that are not among them (other Jobs and Workflows) are drawn as
external.
"""

from __future__ import annotations

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


def mermaid(boxes: Sequence[TaskBox]) -> str:
    """Draw a flowchart. Boxes get generated ids, as a task may be named like a keyword (`end`)."""
    labels = _labels(boxes)
    ids = {name: f"t{at}" for at, name in enumerate(labels)}
    lines = ["flowchart LR"]
    lines += [f'    {ids[name]}["{label}"]' for name, label in labels.items()]
    for box in boxes:
        for upstream, condition in box.upstreams:
            when = "" if condition is Condition.SUCCEEDED else f"|{condition}|"
            lines.append(f"    {ids[upstream]} -->{when} {ids[box.name]}")
    return "\n".join(lines)


def tree(boxes: Sequence[TaskBox], *, lines: int = _LINES) -> str:
    """Draw downstreams below their upstreams, each task once in full, in at most `lines` lines."""
    labels = _labels(boxes)
    downstreams: dict[str, list[tuple[str, Condition]]] = {name: [] for name in labels}
    for box in boxes:
        for upstream, condition in box.upstreams:
            downstreams[upstream].append((box.name, condition))
    has_upstreams = {box.name for box in boxes if box.upstreams}
    roots = [name for name in labels if name not in has_upstreams]
    drawn: list[str] = []
    seen: set[str] = set()
    # Name, condition, what is drawn before the label, and what is drawn below it.
    pending = [(name, Condition.SUCCEEDED, "", "") for name in reversed(roots)]
    while pending and len(drawn) < lines:
        name, condition, before, below = pending.pop()
        notes = [] if condition is Condition.SUCCEEDED else [f"when {condition}"]
        notes += ["shown above"] if name in seen else []
        drawn.append(before + labels[name] + (f" ({', '.join(notes)})" if notes else ""))
        if name not in seen:
            seen.add(name)
            for branch, downstream in enumerate(reversed(downstreams[name])):
                ends = ("├── ", "│   ") if branch else ("└── ", "    ")
                pending.append((*downstream, below + ends[0], below + ends[1]))
    if pending:
        unseen = len(labels) - len(seen)
        drawn.append(f"(cut off after {lines:,} lines; {unseen:,} tasks are not shown)")
    return "\n".join(drawn)


def _labels(boxes: Sequence[TaskBox]) -> dict[str, str]:
    """Return the label of each task by its name, those of external upstreams first."""
    names = {box.name for box in boxes}
    labels = {up: f"{up} (external)" for box in boxes for up, _ in box.upstreams if up not in names}
    for box in boxes:
        labels[box.name] = box.name + _range(box.size)
    return labels


def _range(size: int | None) -> str:
    if size is None:
        return ""
    return f"[0..{size - 1}]" if size > 1 else "[0]"
