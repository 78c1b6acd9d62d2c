"""Converts the JSON schema of a model to a structural schema, the only kind that a CRD accepts.

A structural schema has no references, so each record is copied to where it is used. A field that
can be null in the JSON schema is optional here: the API server drops nulls, as the models do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from workron.core.model import meta
from workron_controller.crds import rules
from workron_controller.crds.kinds import CustomResourceKind

Schema = dict[str, Any]

_KEPT: Final[tuple[str, ...]] = (
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
_NULL: Final = {"type": "null"}
_NO_CONTAINER: Final = {"minItems": 1, "maxItems": 0, "minProperties": 1, "maxProperties": 0}
"""Excludes lists and mappings: none can satisfy both bounds, and scalars ignore them."""

_WITHOUT_DEFAULTS: Final = frozenset({"Task", "JobStatus", "WorkflowStatus", "WorkerPoolStatus"})
"""The API server stores defaults in every object. Ten thousand tasks with all defaults would be too
large for one object, and a counter in a status that is not written yet is not 0."""


class Inliner:
    """Replaces references by the records that they refer to."""

    def __init__(self, records: Mapping[str, Schema], *, has_defaults: bool = True) -> None:
        self._records = records
        self._has_defaults = has_defaults

    def record(self, name: str) -> Schema:
        """Return the full schema of a record with its rules."""
        if self._has_defaults and name in _WITHOUT_DEFAULTS:
            return Inliner(self._records, has_defaults=False).record(name)
        return self._plain(self._records[name]) | rules.of_record(name)

    def _plain(self, schema: Schema) -> Schema:
        made = {key: schema[key] for key in _KEPT if key in schema}
        if "const" in schema:
            made["enum"] = [schema["const"]]
        if _is_any_scalar(schema):
            made = _any_scalar(made)
        return made | self._inside(schema)

    def _inside(self, schema: Schema) -> Schema:
        inside: Schema = {}
        if "properties" in schema:
            inside["properties"] = {
                name: self._field(one) for name, one in schema["properties"].items()
            }
        if "items" in schema:
            inside |= rules.of_list(_name(schema["items"]))
            inside["items"] = self._field(schema["items"])
        for pattern, values in schema.get("patternProperties", {}).items():
            inside |= rules.of_keys(pattern)
            inside["additionalProperties"] = self._field(values)
        return inside

    def _field(self, given: Schema) -> Schema:
        schema = _without_null(given)
        name = _name(schema)
        made = self.record(name) if name else self._plain(schema)
        made |= _described(schema)
        return made | (_default(schema, made) if self._has_defaults else {})


def schema_defaults(record: Schema) -> Schema:
    """Return the defaults of a record's fields: the value of an empty record."""
    fields: Schema = record["properties"]
    return {name: one["default"] for name, one in fields.items() if "default" in one}


def _default(schema: Schema, made: Schema) -> Schema:
    default = schema.get("default")
    if isinstance(default, dict) and "properties" in made:
        default = schema_defaults(made)
    return {"default": default} if default not in (None, "", [], {}) else {}


def _described(schema: Schema) -> Schema:
    """Return the description of a field, which replaces its record's, with the default at the end.

    `kubectl explain` does not show defaults otherwise.
    """
    if "description" not in schema:
        return {}
    text, default = schema["description"], schema.get("default")
    if default not in (None, "") and not isinstance(default, list | dict):
        text += f" Default: {default if isinstance(default, str) else json.dumps(default)}."
    return {"description": text}


def _without_null(schema: Schema) -> Schema:
    some = [one for one in schema.get("anyOf", ()) if one != _NULL]
    if len(some) != 1:
        return schema
    (one,) = some
    return {**one, **{key: value for key, value in schema.items() if key != "anyOf"}}


def _is_any_scalar(schema: Schema) -> bool:
    return "anyOf" in schema and "x-kubernetes-int-or-string" not in schema


def _any_scalar(made: Schema) -> Schema:
    """Return a schema for strings, numbers and booleans, for which the cluster has no type.

    It accepts unknown values, and each bound still applies to the values of its type. It accepts
    null, too: the server stores a null anyway, and where the schema forbids one, the server cannot
    evaluate rules on that object any more.
    """
    bounds = {key: value for one in made["anyOf"] for key, value in one.items() if key != "type"}
    rest = {key: value for key, value in made.items() if key != "anyOf"}
    anything = {"nullable": True, "x-kubernetes-preserve-unknown-fields": True}
    return rest | bounds | _NO_CONTAINER | anything


def _name(schema: Schema) -> str | None:
    """Return the name of the record that a schema refers to."""
    return str(schema["$ref"]).rpartition("/")[2] if "$ref" in schema else None


def definition(kind: CustomResourceKind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind."""
    group, _, version = meta.API_VERSION.partition("/")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.plural.removesuffix("s"),
                "shortNames": [kind.short],
                "categories": ["workron"],
            },
            "versions": [{"name": version, "served": True, "storage": True} | _version(kind)],
        },
    }


def _version(kind: CustomResourceKind) -> dict[str, Any]:
    selectable = [{"jsonPath": path} for path in kind.selectable_fields]
    return {
        "additionalPrinterColumns": [column.as_manifest() for column in kind.columns],
        **({"selectableFields": selectable} if selectable else {}),
        "subresources": {"status": {}} | kind.subresources,
        "schema": {"openAPIV3Schema": _schema(kind)},
    }


def _schema(kind: CustomResourceKind) -> dict[str, Any]:
    schema, records = meta.json_schema(kind.model)
    inliner = Inliner(records)
    fields = schema["properties"]
    spec = inliner.record(f"{kind.name}Spec")
    status = inliner.record(f"{kind.name}Status") | {"default": kind.status}
    required = [name for name in schema["required"] if name != "metadata"]
    return {
        "description": schema["description"],
        "type": "object",
        # The cluster defines these fields and allows few constraints on them.
        **({"required": required} if required else {}),
        "properties": {
            "apiVersion": _text(fields["apiVersion"]),
            "kind": _text(fields["kind"]),
            "metadata": {"type": "object"} | kind.metadata,
            "spec": _definition_described(
                fields["spec"], _spec(kind, spec, is_required="spec" in required)
            ),
            "status": _definition_described(fields["status"], status),
        },
    }


def _spec(kind: CustomResourceKind, spec: dict[str, Any], *, is_required: bool) -> dict[str, Any]:
    if kind.is_immutable:
        immutable = rules.as_schema(rules.immutable(kind.name, spec["properties"]))
        spec["x-kubernetes-validations"] += immutable["x-kubernetes-validations"]
    return spec if is_required else spec | {"default": schema_defaults(spec)}


def _text(field: dict[str, Any]) -> dict[str, Any]:
    return {"description": field["description"], "type": "string"}


def _definition_described(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    return schema | {"description": field["description"]}
