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

_ANY_INT: Final = "x-kubernetes-int-or-string"
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
    _ANY_INT,
)
_NULL: Final = {"type": "null"}
_EXCLUSIONS: Final[Mapping[frozenset[str], Mapping[str, int]]] = {
    frozenset({"array"}): {"minItems": 1, "maxItems": 0},
    frozenset({"object"}): {"minProperties": 1, "maxProperties": 0},
    frozenset({"integer", "number"}): {"minimum": 1, "maximum": 0},
}
"""Bounds that exclude all values of some types: none can satisfy both, and others ignore them."""

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
        if "anyOf" in schema and _ANY_INT not in schema:
            made = _any_type(made)
        if "properties" in schema:
            made["properties"] = {
                name: self._field(one) for name, one in schema["properties"].items()
            }
        if "items" in schema:
            made |= rules.of_list(_name(schema["items"]))
            made["items"] = self._field(schema["items"])
        for pattern, values in schema.get("patternProperties", {}).items():
            made |= rules.of_keys(pattern)
            made["additionalProperties"] = self._field(values)
        return made

    def _field(self, given: Schema) -> Schema:
        schema = _without_null(given)
        name = _name(schema)
        made = self.record(name) if name else self._plain(schema)
        default = schema.get("default")
        if "description" in schema:
            # It replaces that of the record. `kubectl explain` does not show defaults otherwise.
            made["description"] = schema["description"]
            if default not in (None, "") and not isinstance(default, list | dict):
                text = default if isinstance(default, str) else json.dumps(default)
                made["description"] += f" Default: {text}."
        if isinstance(default, dict) and "properties" in made:
            default = schema_defaults(made)
        has_default = self._has_defaults and default not in (None, "", [], {})
        return made | ({"default": default} if has_default else {})


def schema_defaults(record: Schema) -> Schema:
    """Return the defaults of a record's fields: the value of an empty record."""
    fields: Schema = record["properties"]
    return {name: one["default"] for name, one in fields.items() if "default" in one}


def _without_null(schema: Schema) -> Schema:
    some = [one for one in schema.get("anyOf", ()) if one != _NULL]
    if len(some) != 1:
        return schema
    (one,) = some
    return {**one, **{key: value for key, value in schema.items() if key != "anyOf"}}


def _any_type(made: Schema) -> Schema:
    """Return a schema for values of several types, for which the cluster has no type.

    It accepts unknown values, and each bound still applies to the values of its type. It accepts
    null, too: the server stores a null anyway, and where the schema forbids one, the server cannot
    evaluate rules on that object any more. It accepts booleans, and a list of anything: only the
    models check these.
    """
    no_bounds = {"type", "items"}
    bounds = {
        key: value for one in made["anyOf"] for key, value in one.items() if key not in no_bounds
    }
    types = {one["type"] for one in made["anyOf"]}
    for excluded, impossible in _EXCLUSIONS.items():
        bounds |= {} if types & excluded else impossible
    rest = {key: value for key, value in made.items() if key != "anyOf"}
    return rest | bounds | {"nullable": True, "x-kubernetes-preserve-unknown-fields": True}


def _ruled_fields(spec: Schema) -> list[str]:
    """Return the fields that a rule can name: CEL sees none for which the cluster has no type."""
    return [name for name, field in spec["properties"].items() if {"type", _ANY_INT} & field.keys()]


def _name(schema: Schema) -> str | None:
    """Return the name of the record that a schema refers to."""
    return str(schema["$ref"]).rpartition("/")[2] if "$ref" in schema else None


def definition(kind: CustomResourceKind) -> Schema:
    """Return the CustomResourceDefinition of a kind."""
    group, _, version = meta.API_VERSION.partition("/")
    selectable = [{"jsonPath": path} for path in kind.selectable_fields]
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
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [column.as_manifest() for column in kind.columns],
                    **({"selectableFields": selectable} if selectable else {}),
                    "subresources": {"status": {}} | kind.subresources,
                    "schema": {"openAPIV3Schema": _schema(kind)},
                }
            ],
        },
    }


def _schema(kind: CustomResourceKind) -> Schema:
    schema, records = meta.json_schema(kind.model)
    inliner = Inliner(records)
    described = {
        name: {"description": field.get("description")}
        for name, field in schema["properties"].items()
    }
    required = [name for name in schema["required"] if name != "metadata"]
    spec = inliner.record(f"{kind.name}Spec")
    if kind.is_immutable:
        immutable = rules.as_schema(rules.immutable(kind.name, _ruled_fields(spec)))
        spec["x-kubernetes-validations"] += immutable["x-kubernetes-validations"]
    if "spec" not in required:
        spec["default"] = schema_defaults(spec)
    status = inliner.record(f"{kind.name}Status") | {"default": kind.status}
    return {
        "description": schema["description"],
        "type": "object",
        # The cluster defines these fields and allows few constraints on them.
        **({"required": required} if required else {}),
        "properties": {
            "apiVersion": described["apiVersion"] | {"type": "string"},
            "kind": described["kind"] | {"type": "string"},
            "metadata": {"type": "object"} | kind.metadata,
            "spec": spec | described["spec"],
            "status": status | described["status"],
        },
    }
