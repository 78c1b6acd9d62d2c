"""The JSON schemas of Kubernetes for its own kinds, read without a cluster."""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
from typing import Any

import jsonschema
import referencing

_FOLDER = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema"


def problems(body: dict[str, Any], version: str) -> list[str]:
    """List what is invalid in an object; unknown fields are invalid too."""
    found = _validator(version, body["apiVersion"], body["kind"]).iter_errors(body)
    where = f"{body['kind']}/{body['metadata']['name']}"
    return [f"{where}: {one.json_path}: {one.message}" for one in found]


@functools.cache
def _validator(version: str, api: str, kind: str) -> Any:
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api)
    schema = _read(version, f"{kind.lower()}-{group}.json")
    return jsonschema.Draft202012Validator(schema, registry=_definitions(version))


@functools.cache
def _definitions(version: str) -> Any:
    resource = referencing.Resource.from_contents(_read(version, "_definitions.json"))
    return resource @ referencing.Registry()


def _read(version: str, name: str) -> Any:
    return json.loads((_FOLDER / f"v{version}-local-strict" / name).read_text())
