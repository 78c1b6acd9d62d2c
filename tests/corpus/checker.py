"""Checks an object against the schema of its CRD as the API server does, without its rules."""

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any, Final

import jsonschema
from jsonschema import FormatChecker, validators
from jsonschema.exceptions import ValidationError

from workron_controller.crds import schema
from workron_controller.crds.kinds import KINDS

Schema = dict[str, Any]

SCHEMAS: Final[dict[str, Schema]] = {
    kind.name: schema.definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for kind in KINDS
}


def problems(value: dict[str, Any]) -> list[str]:
    """Return the place of each problem, in the form of the API server."""
    schema = SCHEMAS[value["kind"]]
    checked = defaulted(_without_nulls(value, schema), schema)
    found = _Validator(_strict(schema), format_checker=_FORMATS).iter_errors(checked)
    return [place for error in found for place in _places(error)]


def defaulted(value: Any, schema: Schema) -> Any:
    """Return a value with the defaults that the API server adds."""
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        absent = {name: one["default"] for name, one in fields.items() if "default" in one}
        rest = schema.get("additionalProperties", {})
        return {k: defaulted(v, fields.get(k, rest)) for k, v in (absent | value).items()}
    if isinstance(value, list):
        return [defaulted(one, schema.get("items", {})) for one in value]
    return value


def _without_nulls(value: Any, schema: Schema) -> Any:
    if isinstance(value, dict):
        known = schema.get("properties", {})
        given = {name: one for name, one in value.items() if one is not None or name not in known}
        return {name: _without_nulls(one, known.get(name, {})) for name, one in given.items()}
    if isinstance(value, list):
        return [_without_nulls(one, schema.get("items", {})) for one in value]
    return value


def _strict(schema: Any, *, is_top: bool = True) -> Any:
    """Reject unknown fields, as kubectl requests."""
    if isinstance(schema, list):
        return [_strict(one, is_top=False) for one in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(one, is_top=False) for key, one in schema.items()}
    if isinstance(schema.get("properties"), dict):
        strict["additionalProperties"] = False
    if is_top:
        strict["properties"]["metadata"].pop("additionalProperties", None)
    return strict


def _places(error: ValidationError) -> Iterator[str]:
    place = ""
    for step in error.absolute_path:
        place += f"[{step}]" if isinstance(step, int) else f".{step}"
    fields = _fields(error)
    for name in fields:
        yield f"{place}.{name}"[1:]
    if not fields:
        yield place[1:]


def _fields(error: Any) -> list[str]:
    """Return the missing or unknown fields."""
    if error.validator == "required":
        return [name for name in error.validator_value if name not in error.instance]
    if error.validator == "additionalProperties":
        return [name for name in error.instance if name not in error.schema["properties"]]
    return []


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    # In Go, `$` matches only at the end; in Python also before a final line feed.
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value, re.ASCII):
        yield ValidationError(f"{value!r} does not match {pattern}")


def _once(_: Any, keys: list[str], value: Any, __: Any) -> Iterator[ValidationError]:
    seen = set()
    for at, one in enumerate(value):
        key = tuple(one.get(key) for key in keys) if isinstance(one, dict) else at
        if key in seen:
            yield ValidationError("is given twice", path=[at])
        seen.add(key)


_FORMATS: Final = FormatChecker(formats=())


@_FORMATS.checks("date-time", raises=ValueError)
def _is_on_the_calendar(value: Any) -> bool:
    if isinstance(value, str):
        dt.datetime.fromisoformat(value[:19])
    return True


_Validator: Final[Any] = validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft7Validator, {"pattern": _pattern, "x-kubernetes-list-map-keys": _once}
)


def nodes(schema: Schema, place: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield each schema in a schema, with its place."""
    yield place, schema
    for name, one in schema.get("properties", {}).items():
        yield from nodes(one, f"{place}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{place}[]")
    if "additionalProperties" in schema:
        yield from nodes(schema["additionalProperties"], f"{place}.*")
