"""Workflow: tasks, arrays, and limits of size."""

import pydantic
import pytest

from workron.core.model.workflow import Task, TaskDependency, WorkflowSpec


def _task(**fields: object) -> Task:
    return Task.parse({"name": "a", "command": "true"} | fields)


def _spec(*tasks: dict[str, object]) -> WorkflowSpec:
    written = [{"name": f"t{i}", "command": "true"} | task for i, task in enumerate(tasks)]
    return WorkflowSpec.parse({"tasks": written})


def test_task_is_one_job_when_it_is_not_an_array() -> None:
    assert not _task().is_array
    assert _task().size == 1


@pytest.mark.parametrize(
    ("fields", "size"), [({"count": 1}, 1), ({"count": 7}, 7), ({"items": ["x", "y"]}, 2)]
)
def test_task_is_an_array_when_it_has_count_or_items(fields: dict[str, object], size: int) -> None:
    assert _task(**fields).is_array
    assert _task(**fields).size == size


def test_item_may_be_as_long_as_a_variable() -> None:
    assert _task(items=["é" * 64_000]).size == 1


def test_items_keep_their_types() -> None:
    items = ["x", 1, 1.5, True, ""]
    assert [*map(repr, _task(items=items).items or ())] == [*map(repr, items)]


@pytest.mark.parametrize("item", [None, [], {}, float("nan"), "a\0", "é" * 64_001])
def test_item_is_rejected_when_it_does_not_fit_a_variable(item: object) -> None:
    with pytest.raises(pydantic.ValidationError, match=r"items\.1"):
        _task(items=["x", item])


@pytest.mark.parametrize(
    "fields",
    [{"count": 0}, {"count": 100_001}, {"count": True}, {"items": []}, {"items": [1] * 100_001}],
)
def test_array_is_rejected_when_it_is_empty_or_too_long(fields: dict[str, object]) -> None:
    with pytest.raises(pydantic.ValidationError, match=next(iter(fields))):
        _task(**fields)


def test_array_is_rejected_when_it_has_both_count_and_items() -> None:
    with pytest.raises(pydantic.ValidationError, match="both count and items"):
        _task(count=2, items=["x", "y"])


@pytest.mark.parametrize("field", ["priority", "suspend", "cancel", "dependson"])
def test_task_is_rejected_when_it_has_a_field_of_the_workflow(field: str) -> None:
    with pytest.raises(pydantic.ValidationError, match="extra_forbidden"):
        _task(**{field: None})


def test_dependency_does_not_pair_elements_by_default() -> None:
    assert _task(dependsOn=[{"name": "b"}]).depends_on == (TaskDependency(name="b", each=False),)
    assert _task(dependsOn=[{"name": "b", "each": True}]).depends_on[0].each


def test_workflow_is_rejected_when_it_has_no_tasks_or_too_many() -> None:
    assert len(_spec(*[{}] * 10_000).tasks) == 10_000
    for count in (0, 10_001):
        with pytest.raises(pydantic.ValidationError, match="tasks"):
            _spec(*[{}] * count)


def test_workflow_is_rejected_when_its_arrays_have_too_many_jobs() -> None:
    assert len(_spec({"count": 100_000}, {"count": 100_000}).tasks) == 2
    with pytest.raises(pydantic.ValidationError, match=r"have 200,001 jobs.*at most 200,000"):
        _spec({"count": 100_000}, {"count": 100_000}, {})


def test_workflow_has_its_own_editable_fields() -> None:
    fields = {"priority": 5, "suspend": True, "cancel": True, "ttlSecondsAfterFinished": 60}
    spec = WorkflowSpec.parse({"tasks": [{"name": "a", "command": "true"}]} | fields)
    assert (spec.priority, spec.suspend, spec.cancel) == (5, True, True)
    assert spec.ttl_seconds_after_finished == 60
