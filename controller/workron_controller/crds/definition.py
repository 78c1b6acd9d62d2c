"""Puts the definition of a kind together: names, schema, columns and subresources."""

from __future__ import annotations

from typing import Any

from workron.core.model import json_schema, meta
from workron_controller.crds import rules, structural
from workron_controller.crds.kinds import Kind


def make(kind: Kind) -> dict[str, Any]:
    """Give the custom resource definition of a kind."""
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


def _version(kind: Kind) -> dict[str, Any]:
    selectable = [{"jsonPath": path} for path in kind.selectable]
    return {
        "additionalPrinterColumns": [column.as_manifest() for column in kind.columns],
        **({"selectableFields": selectable} if selectable else {}),
        "subresources": {"status": {}} | kind.subresources,
        "schema": {"openAPIV3Schema": _schema(kind)},
    }


def _schema(kind: Kind) -> dict[str, Any]:
    schema, records = json_schema.of(kind.model)
    inliner = structural.Inliner(records)
    fields = schema["properties"]
    spec = inliner.record(f"{kind.name}Spec")
    status = inliner.record(f"{kind.name}Status") | {"default": kind.status}
    required = [name for name in schema["required"] if name != "metadata"]
    return {
        "description": schema["description"],
        "type": "object",
        # The cluster's own fields; it allows little to be said about them.
        **({"required": required} if required else {}),
        "properties": {
            "apiVersion": _text(fields["apiVersion"]),
            "kind": _text(fields["kind"]),
            "metadata": {"type": "object"} | kind.metadata,
            "spec": _described(fields["spec"], _spec(kind, spec, is_required="spec" in required)),
            "status": _described(fields["status"], status),
        },
    }


def _spec(kind: Kind, spec: dict[str, Any], *, is_required: bool) -> dict[str, Any]:
    if kind.is_frozen:
        frozen = rules.as_schema(rules.frozen(kind.name, spec["properties"]))
        spec["x-kubernetes-validations"] += frozen["x-kubernetes-validations"]
    return spec if is_required else spec | {"default": structural.defaults(spec)}


def _text(field: dict[str, Any]) -> dict[str, Any]:
    return {"description": field["description"], "type": "string"}


def _described(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    return schema | {"description": field["description"]}
