"""From the JSON schema of a model to a structural schema, the only kind that a cluster takes.

Nothing is referred to: each record stands where it is used. What may be null in JSON schema only
may be absent here: the API server drops a null as the models do. Called by `definition`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from workron_controller.crds import rules

Schema = dict[str, Any]

_KEPT: Final = (
    "description",
    "type",
    "format",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "maxProperties",
    "anyOf",
    "required",
    "x-kubernetes-int-or-string",
)
_SCALAR: Final = {
    "x-kubernetes-preserve-unknown-fields": True,
    **{"minItems": 1, "maxItems": 0, "minProperties": 1, "maxProperties": 0},
}
"""Text, number, true or false: of types a structural schema has no other choice than integer or
string, so that all are let in, but no list and no map can have both more and fewer than one."""
_NULL: Final = {"type": "null"}
_WITHOUT_DEFAULTS: Final = frozenset({"Task", "JobStatus", "WorkflowStatus", "WorkerPoolStatus"})
"""Defaults are stored in every object. Ten thousand tasks with all of theirs are more than a cluster
takes as one, and what nobody has counted yet is not 0."""


class Inliner:
    """Writes records out in full."""

    def __init__(self, records: Mapping[str, Schema]) -> None:
        self._records = records

    def record(self, name: str, *, has_defaults: bool = True) -> Schema:
        """Write out the record of this name, with all that is in it and the rules about it."""
        has_defaults = has_defaults and name not in _WITHOUT_DEFAULTS
        return self._plain(self._records[name], has_defaults) | rules.of_record(name)

    def _field(self, given: Schema, has_defaults: bool) -> Schema:
        schema = _unless_null(given)
        name = _name(schema)
        made = self.record(name, has_defaults=has_defaults) if name else None
        if made is None:
            made = self._plain(schema, has_defaults)
        elif "description" in schema:
            # What the field is for says more than what its record is in general.
            made["description"] = schema["description"]
        made |= _told(schema, made)
        return made | (_default(schema, made) if has_defaults else {})

    def _plain(self, schema: Schema, has_defaults: bool) -> Schema:
        made = {key: schema[key] for key in _KEPT if key in schema}
        if "const" in schema:
            made["enum"] = [schema["const"]]
        if _is_any_scalar(schema):
            made = {k: v for one in made.pop("anyOf") for k, v in one.items() if k != "type"}
            made |= _SCALAR
        if "properties" in schema:
            made["properties"] = {
                name: self._field(one, has_defaults) for name, one in schema["properties"].items()
            }
        if "items" in schema:
            made |= rules.of_list(_name(schema["items"]))
            made["items"] = self._field(schema["items"], has_defaults)
        for pattern, values in schema.get("patternProperties", {}).items():
            made |= rules.of_keys(pattern)
            made["additionalProperties"] = self._field(values, has_defaults)
        return made


def defaults(made: Schema) -> Schema:
    """Give the defaults of a record's fields: what is in the record when nothing is."""
    return {
        name: field["default"] for name, field in made["properties"].items() if "default" in field
    }


def _default(schema: Schema, made: Schema) -> Schema:
    default = schema.get("default")
    if isinstance(default, dict) and "properties" in made:
        default = defaults(made)
    return {"default": default} if default not in (None, "", [], {}) else {}


def _told(schema: Schema, made: Schema) -> Schema:
    """Have the description end with the default, which `kubectl explain` shows nowhere else."""
    default = schema.get("default")
    if default in (None, "") or isinstance(default, dict | list) or "description" not in made:
        return {}
    word = default if isinstance(default, str) else json.dumps(default)
    return {"description": f"{made['description']} Default: {word}."}


def _unless_null(schema: Schema) -> Schema:
    some = [one for one in schema.get("anyOf", ()) if one != _NULL]
    if len(some) != 1:
        return schema
    return some[0] | {key: value for key, value in schema.items() if key != "anyOf"}


def _is_any_scalar(schema: Schema) -> bool:
    return "anyOf" in schema and "x-kubernetes-int-or-string" not in schema


def _name(schema: Schema) -> str | None:
    """Name the record that is referred to; words to choose from are no record."""
    return str(schema["$ref"]).rpartition("/")[2] if "$ref" in schema else None
