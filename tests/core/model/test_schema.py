"""The JSON schema of the models, from which custom resource definitions are made."""

from collections.abc import Iterator
from typing import Any

import pytest

from workron.core.model import base, meta
from workron.core.model.job import Job, JobSpec
from workron.core.model.workerpool import WorkerPool, WorkerPoolSpec
from workron.core.model.workflow import Workflow, WorkflowSpec

_KINDS = [Job, Workflow, WorkerPool]
_SPECS = [JobSpec, WorkflowSpec, WorkerPoolSpec]


def _fields(model: type[base.Record]) -> Iterator[tuple[str, dict[str, Any]]]:
    schema, parts = meta.json_schema(model)
    for name, part in [(model.__name__, schema), *parts.items()]:
        for field, what in part.get("properties", {}).items():
            yield f"{name}.{field}", what


def _leaves(field: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield field
    for inner in [*field.get("anyOf", ()), field.get("items")]:
        if inner:
            yield from _leaves(inner)


@pytest.mark.parametrize("kind", _KINDS)
def test_schema_describes_every_field_in_a_sentence(kind: type[base.Record]) -> None:
    for name, what in _fields(kind):
        assert what.get("description", "").endswith("."), name


@pytest.mark.parametrize("kind", _KINDS)
def test_schema_names_every_field_in_camel_case(kind: type[base.Record]) -> None:
    assert not [name for name, _ in _fields(kind) if "_" in name.split(".")[1]]


@pytest.mark.parametrize("kind", _KINDS)
def test_schema_allows_no_other_fields(kind: type[base.Record]) -> None:
    _, parts = meta.json_schema(kind)
    for name, part in parts.items():
        assert part["type"] != "object" or part["additionalProperties"] is False, name


@pytest.mark.parametrize("spec", _SPECS)
def test_schema_of_a_spec_bounds_every_list(spec: type[base.Record]) -> None:
    for name, what in _fields(spec):
        for leaf in _leaves(what):
            assert leaf.get("type") != "array" or "maxItems" in leaf, name


@pytest.mark.parametrize("spec", _SPECS)
def test_schema_of_a_spec_bounds_every_map(spec: type[base.Record]) -> None:
    for name, what in _fields(spec):
        for leaf in _leaves(what):
            assert "patternProperties" not in leaf or "maxProperties" in leaf, name


@pytest.mark.parametrize("spec", _SPECS)
def test_schema_of_a_spec_bounds_every_number(spec: type[base.Record]) -> None:
    texts_too = {"EmptyDirVolume.sizeLimit", "Task.items", "Task.maxFailures"}
    for name, what in _fields(spec):
        for leaf in _leaves(what):
            if leaf.get("type") in {"integer", "number"} and name not in texts_too:
                assert {"minimum", "maximum"} <= leaf.keys(), name
