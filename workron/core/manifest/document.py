"""One document of a text, and how each problem in it finds its line.

Made by `tree`; read by `explain` and `read`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from workron.core import errors

Step = str | int
Path = tuple[Step, ...]

_SHOWN: Final = 60
_PLAIN_STEP: Final = re.compile(rf"[A-Za-z_$][A-Za-z0-9_$]{{0,{_SHOWN}}}")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where."""

    line: int
    message: str
    path: Path = ()

    def told(self, source: str) -> str:
        """Write it as the one line that a person reads."""
        where = f"{render(self.path)}: " if self.path else ""
        return f"{source}:{self.line}: {where}{self.message}"


class UnreadableError(errors.ManifestError):
    """The text is broken here, and what follows cannot be read."""

    def __init__(self, problem: Problem) -> None:
        super().__init__([problem.message])
        self.problem = problem


@dataclass(slots=True)
class Document:
    """A tree of plain values, with the line of each."""

    value: Any = None
    line: int = 1
    lines: dict[int, Mapping[Any, int] | Sequence[int]] = field(default_factory=dict)
    """By the identity of a mapping or a list: the line of each entry."""
    unexplained: int = 0
    """How many problems it has beyond those listed."""
    _problems: dict[Path, Problem] = field(default_factory=dict)

    def report(self, path: Path, message: str, line: int | None = None) -> None:
        """Note a problem, unless the same place has one: the first is the cause."""
        where = self.line_of(path) if line is None else line
        self._problems.setdefault(path, Problem(where, message, path))

    @property
    def problems(self) -> list[Problem]:
        """List what is wrong, from top to bottom."""
        return sorted(self._problems.values(), key=lambda problem: problem.line)

    def line_of(self, path: Iterable[Step]) -> int:
        """Find the line of what a path leads to, or of the nearest thing above it."""
        line, node = self.line, self.value
        for step in path:
            try:
                line, node = self.lines[id(node)][step], node[step]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                break
        return line


def render(path: Path) -> str:
    """Write a path like `spec.tasks[3].env[0].name`."""
    steps = (_render_step(step) for step in path)
    return "".join(steps).removeprefix(".")


def _render_step(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN_STEP.fullmatch(step):
        return f".{step}"
    return f"[{json.dumps(step if len(step) <= _SHOWN else step[:_SHOWN] + '…')}]"
