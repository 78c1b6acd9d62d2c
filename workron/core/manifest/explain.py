"""What the models refuse, in words for the person who wrote the manifest.

Turns pydantic's errors into a path and a message that says what would be right. Called by `read`.
"""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pydantic

from workron.core import form
from workron.core.manifest.document import Path, Step
from workron.core.model import record

_Wording = Callable[[Any, Mapping[str, Any]], str]

MAX_EXPLAINED: Final = 200
"""Finding the name that was meant takes time, and nobody reads so many problems."""

_NEAR: Final = 0.65
_QUOTED: Final = re.compile(r"'([^']*)'")
_KEY_MARK: Final = "[key]"


def explain(
    error: pydantic.ValidationError, model: type[record.Record]
) -> tuple[list[tuple[Path, str]], int]:
    """Give path and message of the first things that `model` refused, and how many more it did."""
    refused = [details for details in error.errors(include_url=False) if not _is_echo(details)]
    explained = []
    for details in refused[:MAX_EXPLAINED]:
        path = tuple(step for step in details["loc"] if step != _KEY_MARK)
        explained.append((path, _message(details, model, path)))
    return explained, len(refused) - len(explained)


def _is_echo(details: Any) -> bool:
    """Tell whether a list is only called too short because its entries were refused."""
    return details["type"] == "too_short" and len(details["input"]) > 0


def unknown(name: str, valid: Iterable[str]) -> str:
    """Refuse a field that does not exist, with the one that was probably meant."""
    plain = {_plain(v): v for v in sorted(valid)}
    near = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=_NEAR)
    advice = f"did you mean {plain[near[0]]}?" if near else f"valid are {', '.join(plain.values())}"
    return f"there is no such field here; {advice}"


def found(value: object) -> str:
    """Name what stands in the place of something else."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"{str(value).lower()} (plain y, yes and on, n, no and off are read so)"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {form.shown(value)}"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _message(details: Any, model: type[record.Record], path: Path) -> str:
    if details["type"] == "extra_forbidden":
        return unknown(str(path[-1]), _names_at(model, path[:-1]))
    wording = _WORDINGS.get(details["type"])
    if wording is None:
        return str(details["msg"])
    return wording(details["input"], details.get("ctx", {}))


def _names_at(model: type[record.Record], path: Path) -> Iterable[str]:
    node: Any = model
    for step in path:
        node = _bare(_inside(node, step))
    return [field.alias or name for name, field in node.__pydantic_fields__.items()]


def _inside(node: Any, step: Step) -> Any:
    if isinstance(step, int):
        return typing.get_args(node)[0]
    fields = node.__pydantic_fields__.values()
    return next(field.annotation for field in fields if field.alias == step)


def _bare(node: Any) -> Any:
    """Take `| None` and annotations off a type."""
    while typing.get_origin(node) in _WRAPPERS:
        node = typing.get_args(node)[0]
    return node


def _wrong_type(what: str, advice: str = "") -> _Wording:
    return lambda value, _: f"must be {what}, found {found(value)}{advice}"


def _text_type(value: Any, _: Mapping[str, Any]) -> str:
    advice = "; write it in quotes" if isinstance(value, int | float) else ""
    return f"must be a text, found {found(value)}{advice}"


def _not_one_of(value: Any, context: Mapping[str, Any]) -> str:
    words = ", ".join(_QUOTED.findall(context["expected"]))
    return f"must be one of {words}, found {found(value)}"


_WRAPPERS: Final = (types.UnionType, typing.Union, typing.Annotated)
_WORDINGS: Final[Mapping[str, _Wording]] = {
    "missing": lambda _, __: "is required",
    "string_type": _text_type,
    "string_too_short": lambda _, __: "is empty",
    "int_type": _wrong_type("a whole number"),
    "float_type": _wrong_type("a number"),
    "bool_type": _wrong_type("true or false"),
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
