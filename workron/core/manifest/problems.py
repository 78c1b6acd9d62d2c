"""The problems of a document: each with its line, its path and a message for a person.

`yaml_reader` makes documents that know the line of every value; `explain` turns the errors of
pydantic into messages.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pydantic

from workron.core import formats
from workron.core.manifest import advice
from workron.core.model import base

Step = str | int
Path = tuple[Step, ...]

_SHOWN: Final = 60
_PLAIN_STEP: Final = re.compile(rf"[A-Za-z_$][A-Za-z0-9_$]{{0,{_SHOWN}}}")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem and its place."""

    line: int
    message: str
    path: Path = ()

    def format(self, source: str) -> str:
        """Return the problem as one line with file, line number and path."""
        where = f"{format_path(self.path)}: " if self.path else ""
        return f"{source}:{self.line}: {where}{self.message}"


@dataclass(slots=True)
class Document:
    """A tree of plain values, with the line of each."""

    value: Any = None
    line: int = 1
    lines: dict[int, Mapping[Any, int] | Sequence[int]] = field(default_factory=dict)
    """The line of each entry, by the `id()` of its mapping or list."""
    unexplained: int = 0
    """Number of problems beyond those listed."""
    _problems: dict[Path, Problem] = field(default_factory=dict)

    def report(self, path: Path, message: str, line: int | None = None) -> None:
        """Add a problem, unless its path has one already: the first is the cause."""
        where = self.line_of(path) if line is None else line
        self._problems.setdefault(path, Problem(where, message, path))

    @property
    def problems(self) -> list[Problem]:
        """The problems, in the order of their lines."""
        return sorted(self._problems.values(), key=lambda problem: problem.line)

    def line_of(self, path: Iterable[Step]) -> int:
        """Return the line of a path, or of its nearest ancestor that exists."""
        line, node = self.line, self.value
        for step in path:
            try:
                line, node = self.lines[id(node)][step], node[step]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                break
        return line


def format_path(path: Path) -> str:
    """Return a path in the form `spec.tasks[3].env[0].name`."""
    steps = (_render_step(step) for step in path)
    return "".join(steps).removeprefix(".")


def _render_step(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN_STEP.fullmatch(step):
        return f".{step}"
    return f"[{json.dumps(step if len(step) <= _SHOWN else step[:_SHOWN] + '…')}]"


_Wording = Callable[[Any, Mapping[str, Any]], str]

MAX_EXPLAINED: Final = 200
"""Problems that are explained; looking for the name that was meant takes time."""

_YAML_BOOLEANS: Final = "(in YAML a plain y, yes, on, n, no or off is true or false)"
_QUOTED: Final = re.compile(r"'([^']*)'")
_KEY_MARK: Final = "[key]"


def explain(
    error: pydantic.ValidationError, model: type[base.Record]
) -> tuple[list[tuple[Path, str]], int]:
    """Return path and message of the first errors of `model`, and the number of the others."""
    refused = [details for details in error.errors(include_url=False) if not _is_echo(details)]
    explained = []
    for details in refused[:MAX_EXPLAINED]:
        path = tuple(step for step in details["loc"] if step != _KEY_MARK)
        explained.append((path, _message(details, model, path)))
    return explained, len(refused) - len(explained)


def _is_echo(details: Any) -> bool:
    """Return whether a list is reported as too short only because its entries were invalid."""
    return details["type"] == "too_short" and len(details["input"]) > 0


def describe_value(value: object) -> str:
    """Describe a value that has the wrong type."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"{str(value).lower()} {_YAML_BOOLEANS}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {formats.quoted(value)}"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _message(details: Any, model: type[base.Record], path: Path) -> str:
    if details["type"] == "extra_forbidden":
        return advice.unknown_field(str(path[-1]), _names_at(model, path[:-1]))
    wording = _WORDINGS.get(details["type"])
    if wording is None:
        return str(details["msg"])
    message = wording(details["input"], details.get("ctx", {}))
    is_about_type = details["type"].endswith("_type") or details["type"] == "missing"
    if not is_about_type or ";" in message:
        return message
    field = next((step for step in reversed(path) if isinstance(step, str)), "")
    return message + advice.wrong_type(field, details["input"], is_entry=path[-1:] != (field,))


def _names_at(model: type[base.Record], path: Path) -> Iterable[str]:
    node: Any = model
    for step in path:
        if isinstance(step, int):
            node = typing.get_args(node)[0]
        else:
            fields = node.__pydantic_fields__.values()
            node = next(field.annotation for field in fields if field.alias == step)
        while typing.get_origin(node) in _WRAPPERS:
            node = typing.get_args(node)[0]
    return [field.alias or name for name, field in node.__pydantic_fields__.items()]


def _wrong_type(what: str) -> _Wording:
    return lambda value, _: f"must be {what}, found {describe_value(value)}"


def _whole_number_type(value: Any, _: Mapping[str, Any]) -> str:
    advice = "; remove the quotes" if isinstance(value, str) and value.isdecimal() else ""
    return f"must be a whole number, found {describe_value(value)}{advice}"


def _text_type(value: Any, _: Mapping[str, Any]) -> str:
    advice = "; write it in quotes" if isinstance(value, int | float) else ""
    return f"must be a text, found {describe_value(value)}{advice}"


def _not_one_of(value: Any, context: Mapping[str, Any]) -> str:
    words = _QUOTED.findall(context["expected"])
    meant = advice.near_word(value, words)
    return f"must be one of {', '.join(words)}, found {describe_value(value)}{meant}"


def _boolean_type(value: Any, _: Mapping[str, Any]) -> str:
    tip = "; remove the quotes" if value in {"true", "false"} else ""
    return f"must be true or false, found {describe_value(value)}{tip}"


_WRAPPERS: Final = (types.UnionType, typing.Union, typing.Annotated)
"""What a field's type may be wrapped in: `| None` and annotations."""
_WORDINGS: Final[Mapping[str, _Wording]] = {
    "missing": lambda _, __: "is required",
    "value_error": lambda _, context: str(context["error"]),
    "string_type": _text_type,
    "string_too_short": lambda _, __: "is empty",
    "int_type": _whole_number_type,
    "float_type": _wrong_type("a number"),
    "bool_type": _boolean_type,
    "tuple_type": _wrong_type("a list"),
    "dict_type": _wrong_type("a mapping"),
    "model_type": _wrong_type("a mapping"),
    "literal_error": _not_one_of,
    "enum": _not_one_of,
    "too_short": lambda _, __: "is empty; at least one entry is needed",
    "too_long": lambda v, c: f"has {len(v):,} entries; at most {c['max_length']:,} are allowed",
    "greater_than_equal": lambda v, c: f"must be at least {c['ge']:,}, found {v:,}",
    "less_than_equal": lambda v, c: f"must be at most {c['le']:,}, found {v:,}",
}
