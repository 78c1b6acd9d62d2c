"""A mapping or a list that is being read, and the rules of its entries. Used by `tree` alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from workron.core.manifest.document import Step

MERGE: Final = "<<"
_TWICE: Final = "is given twice, first in line {}; give it once"


@dataclass(slots=True)
class Frame:
    """What is common to both: where it began, and how deep it goes."""

    line: int
    anchor: str | None
    nodes_before: int
    height: int = 1


@dataclass(slots=True)
class ListFrame(Frame):
    """A list that is open."""

    value: list[Any] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    @property
    def step(self) -> Step:
        """Tell where the next entry goes."""
        return len(self.value)

    def add(self, value: Any, line: int) -> str | None:
        """Append an entry; nothing can be wrong with it."""
        self.value.append(value)
        self.lines.append(line)
        return None


@dataclass(slots=True)
class MappingFrame(Frame):
    """A mapping that is open; a key and its value come in turn."""

    value: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    step: str = ""
    """The key that came last."""
    wants_key: bool = True
    is_merging: bool = False
    _key_line: int = 0
    _merged: set[str] = field(default_factory=set)
    _merge_line: int | None = None

    def begin(self, key: Any, line: int) -> str | None:
        """Take a key; answer what is wrong with it."""
        self.step = key if isinstance(key, str) else _as_text(key)
        self._key_line, self.wants_key = line, False
        if not isinstance(key, (str, int)):
            return "a key is a text; write it in quotes"
        if self.step in self.value and self.step not in self._merged:
            return _TWICE.format(self.lines[self.step])
        return None

    def begin_merge(self, line: int) -> str | None:
        """Take the key `<<`; answer what is wrong with it."""
        before, self._merge_line = self._merge_line, line
        self.step, self.wants_key, self.is_merging = MERGE, False, True
        return _TWICE.format(before) + ", with a list of mappings" if before else None

    def add(self, value: Any, line: int) -> str | None:
        """Take the next key, or the value of the last one; answer what is wrong with it."""
        if self.wants_key:
            return self.begin(value, line)
        self.wants_key = True
        if self.is_merging:
            self.is_merging = False
            return self._merge(value, line)
        self.value[self.step], self.lines[self.step] = value, self._key_line
        if self._merged:
            self._merged.discard(self.step)
        return None

    def _merge(self, value: Any, line: int) -> str | None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            return "takes a mapping, or a list of mappings"
        problem = None
        for key, merged in ((k, v) for source in sources for k, v in source.items()):
            if key not in self.value:
                self.value[key], self.lines[key] = merged, line
                self._merged.add(key)
            elif key not in self._merged:
                # YAML keeps what stands here, kubectl takes what is merged: neither is safe.
                problem = f"brings '{key}', which stands before it; put << first"
        return problem


def _as_text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)
