"""Names, columns, selectable fields and subresources point to existing fields."""

from typing import Any

import pytest

from workron.core.model import base
from workron.core.model.status import JobStatus, WorkerPoolStatus, WorkflowStatus
from workron_controller.crds import schema
from workron_controller.crds.kinds import KINDS, CustomResourceKind

_BY_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
_MOST_SELECTABLE = 8
_STATUS: dict[str, type[base.Record]] = {
    "Job": JobStatus,
    "Workflow": WorkflowStatus,
    "WorkerPool": WorkerPoolStatus,
}


def _version(kind: CustomResourceKind) -> dict[str, Any]:
    version: dict[str, Any] = schema.definition(kind)["spec"]["versions"][0]
    return version


def _field(kind: CustomResourceKind, path: str) -> dict[str, Any]:
    field: dict[str, Any] = _version(kind)["schema"]["openAPIV3Schema"]
    for name in path.removeprefix(".").split("."):
        field = field["properties"][name]
    return field


@_BY_KIND
def test_definition_is_named_after_its_plural_which_kubernetes_does_not_use(
    kind: CustomResourceKind,
) -> None:
    made = schema.definition(kind)
    names = made["spec"]["names"]
    assert made["metadata"]["name"] == f"{names['plural']}.workron.dev"
    assert {names["plural"], names["singular"]}.isdisjoint({"jobs", "job", "workflows"})
    assert names["categories"] == ["workron"]


def test_short_names_are_those_of_the_docs() -> None:
    assert [kind.short for kind in KINDS] == ["wj", "wflow", "wpool"]


@_BY_KIND
def test_column_shows_a_field_of_its_type(kind: CustomResourceKind) -> None:
    for column in kind.columns:
        if column.path != ".metadata.creationTimestamp":
            field = _field(kind, column.path)
            assert field["type"] == column.type or field["format"] == "date-time", column.name


@_BY_KIND
def test_selectable_field_is_a_plain_one(kind: CustomResourceKind) -> None:
    assert len(kind.selectable_fields) <= _MOST_SELECTABLE
    assert {_field(kind, path)["type"] for path in kind.selectable_fields} <= {"string"}


def test_scale_subresource_points_to_fields_of_a_pool() -> None:
    pool = KINDS[2]
    scale = _version(pool)["subresources"]["scale"]
    assert [_field(pool, path)["type"] for path in scale.values()] == [
        "integer", "integer", "string",
    ]  # fmt: skip


@_BY_KIND
def test_default_status_is_valid_for_the_models(kind: CustomResourceKind) -> None:
    status = _version(kind)["schema"]["openAPIV3Schema"]["properties"]["status"]["default"]
    assert _STATUS[kind.name].parse(status).as_manifest() == status
    assert [one["type"] for one in status["conditions"]] == ["Reconciling"]


def test_pool_has_every_default_when_it_has_no_spec() -> None:
    schema = _version(KINDS[2])["schema"]["openAPIV3Schema"]
    spec = schema["properties"]["spec"]
    assert "required" not in schema
    assert spec["default"] == {
        name: field["default"] for name, field in spec["properties"].items() if "default" in field
    }
    assert spec["default"]["lease"] == "1m"
