"""The schemas are structural, described and bounded, and have the defaults of the models."""

import pathlib
import uuid
from typing import Any

import pytest

from tests.corpus import cases, checker
from workron.core import planner
from workron.core.manifest import load
from workron.core.model.job import Job
from workron.core.model.workflow import Workflow

_UID = uuid.UUID(int=0)
_KINDS = [*checker.SCHEMAS]
_MORE = pathlib.Path(__file__).parents[2] / "core" / "manifest" / "corpus" / "good"
_GOOD = [case.text for case in cases.of("good")] + [
    file.read_text() for file in sorted(_MORE.iterdir())
]


def _nodes(kind: str) -> list[tuple[str, dict[str, Any]]]:
    return [*checker.nodes(checker.SCHEMAS[kind])]


def _fields(kind: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the named fields, except those of the cluster."""
    return [
        (place, schema)
        for place, schema in _nodes(kind)
        if place and not place.startswith(".metadata") and place[-1] not in "]*"
    ]


@pytest.mark.parametrize("kind", _KINDS)
def test_schema_uses_only_keywords_of_structural_schemas(kind: str) -> None:
    foreign = {"$ref", "$defs", "title", "const", "patternProperties", "propertyNames", "oneOf"}
    for place, schema in _nodes(kind):
        assert foreign.isdisjoint(schema), place
        assert schema.get("additionalProperties") is not False, place


_UNTYPED_OF_A_TASK = {
    f".spec.{field}[].{name}" for field in ("tasks", "finally") for name in ("items[]", "shell")
}
"""Items are of any scalar type, and a shell is a text or a list."""


@pytest.mark.parametrize("kind", _KINDS)
def test_schema_has_one_type_at_every_place(kind: str) -> None:
    untyped = {
        place: schema
        for place, schema in _nodes(kind)
        if "type" not in schema and "x-kubernetes-int-or-string" not in schema
    }
    assert set(untyped) == {
        "Job": {".spec.shell"},
        "Workflow": _UNTYPED_OF_A_TASK,
        "WorkerPool": set(),
    }.get(kind)


@pytest.mark.parametrize("kind", _KINDS)
def test_every_field_has_a_description(kind: str) -> None:
    for place, schema in _fields(kind):
        assert schema["description"].endswith("."), place


@pytest.mark.parametrize(
    ("kind", "place", "ending"),
    [
        ("Job", ".spec.maxAttempts", " Default: 3."),
        ("Job", ".spec.suspend", " Default: false."),
        ("Job", ".spec.command", "Set either command or argv."),
        ("Workflow", ".spec.tasks[].maxAttempts", " Default: 3."),
        ("WorkerPool", ".spec.lease", " Default: 1m."),
    ],
)
def test_description_ends_with_the_default(kind: str, place: str, ending: str) -> None:
    assert dict(_nodes(kind))[place]["description"].endswith(ending)


@pytest.mark.parametrize("kind", _KINDS)
def test_every_text_list_and_map_of_a_spec_and_a_status_is_bounded(kind: str) -> None:
    bounds = {"string": "maxLength", "array": "maxItems"}
    for place, schema in _nodes(kind):
        if place.startswith((".spec", ".status")) and "enum" not in schema:
            assert bounds.get(schema.get("type", "")) in {None, *schema}, place
            assert "additionalProperties" not in schema or "maxProperties" in schema, place


@pytest.mark.parametrize("kind", _KINDS)
def test_every_number_of_a_spec_is_bounded(kind: str) -> None:
    for place, schema in _nodes(kind):
        if place.startswith(".spec") and schema.get("type") in {"integer", "number"}:
            assert {"minimum", "maximum"} <= schema.keys(), place


@pytest.mark.parametrize("kind", _KINDS)
def test_every_list_has_a_merge_type(kind: str) -> None:
    for place, schema in _nodes(kind):
        assert (schema.get("type") == "array") == ("x-kubernetes-list-type" in schema), place


def test_tasks_are_atomic_and_variables_are_merged_by_name() -> None:
    tasks = checker.SCHEMAS["Workflow"]["properties"]["spec"]["properties"]["tasks"]
    assert (tasks["x-kubernetes-list-type"], tasks["maxItems"]) == ("atomic", 10_000)
    assert tasks["items"]["properties"]["env"]["x-kubernetes-list-map-keys"] == ["name"]


@pytest.mark.parametrize("kind", _KINDS)
def test_merge_key_is_required_or_has_a_default(kind: str) -> None:
    for place, schema in _nodes(kind):
        for key in schema.get("x-kubernetes-list-map-keys", ()):
            items = schema["items"]
            assert key in items.get("required", ()) or "default" in items["properties"][key], place


def test_tasks_have_no_defaults_as_they_would_make_objects_too_large() -> None:
    tasks = checker.SCHEMAS["Workflow"]["properties"]["spec"]["properties"]["tasks"]
    assert [place for place, schema in checker.nodes(tasks) if "default" in schema] == []


@pytest.mark.parametrize("manifest", _GOOD)
def test_spec_and_digest_are_unchanged_when_defaults_are_written_into_the_object(
    manifest: str,
) -> None:
    for one in load.load([load.ManifestSource("f", manifest.encode())]):
        schema = checker.SCHEMAS[one.resource.kind]
        stored = type(one.resource).parse(checker.defaulted(one.resource.as_manifest(), schema))
        assert stored.spec == one.resource.spec
        assert _digest(stored) == _digest(one.resource)


def _digest(resource: object) -> str | None:
    match resource:
        case Job() as job:
            return planner.plan_job(job, _UID).digest()
        case Workflow() as workflow:
            return planner.plan_workflow(workflow, _UID).digest()
        case _:
            return None
