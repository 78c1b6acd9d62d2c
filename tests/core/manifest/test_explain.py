"""The words for what the models refuse, one for each kind of refusal."""

import pydantic
import pytest

from workron.core.manifest import problems
from workron.core.model.job import Job
from workron.core.model.workflow import Workflow


def _told(field: str, value: object) -> dict[str, str]:
    task: dict[str, object] = {"name": "a", "command": "true"}
    spec = {"tasks": [task | {field: value}]}
    with pytest.raises(pydantic.ValidationError) as refused:
        Workflow.parse({"metadata": {"name": "w"}, "spec": spec})
    where = ("spec", "tasks", 0, field)
    told, _ = problems.explain(refused.value, Workflow)
    return {".".join(map(str, path[len(where) :])): message for path, message in told}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("pool", 5, "must be a text, found the number 5; write it in quotes"),
        ("pool", ["a"], "must be a text, found a list"),
        ("count", "5", "must be a whole number, found the text '5'"),
        ("count", 1.5, "must be a whole number, found the number 1.5"),
        ("count", {}, "must be a whole number, found a mapping"),
        ("count", 0, "must be at least 1, found 0"),
        ("count", 200_000, "must be at most 100,000, found 200,000"),
        ("argv", "ls", "must be a list, found the text 'ls'"),
        ("argv", [], "is empty; at least one entry is needed"),
        ("env", [{"name": "A"}] * 1001, "has 1,001 entries; at most 1,000 are allowed"),
        ("backoff", [], "must be a mapping, found a list"),
        ("overlap", "allow", "must be one of Allow, Forbid, found the text 'allow'"),
        ("timeout", 5, "5 has no unit; write it as 90s, 5m, 1h30m or 500ms"),
        ("maxattempts", 5, "there is no such field here; did you mean maxAttempts?"),
        ("max_attempts", 5, "there is no such field here; did you mean maxAttempts?"),
        ("depends-on", 5, "there is no such field here; did you mean dependsOn?"),
    ],
)
def test_refusal_says_what_was_found_and_what_would_be_right(
    field: str, value: object, message: str
) -> None:
    assert _told(field, value) == {"": message}


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("backoff", {"factor": True}, {"factor": "must be a number, found true"}),
        ("dependsOn", [{}], {"0.name": "is required"}),
        ("dependsOn", [{"name": "b", "each": 1}], {"0.each": "must be true or false"}),
        ("dependsOn", [{"name": "b", "when": "x"}], {"0.when": "must be one of Succeeded, Failed"}),
        ("dependsOn", [{"name": "b", "kind": "Job"}], {"0.kind": "valid are each, name, when"}),
        ("env", [{"name": "A", "valuex": ""}], {"0.valuex": "did you mean value?"}),
    ],
)
def test_refusal_within_a_field_names_the_path(
    field: str, value: object, told: dict[str, str]
) -> None:
    found = _told(field, value)
    assert found.keys() == told.keys()
    assert all(told[path] in message for path, message in found.items())


def test_boolean_is_explained_when_a_word_became_one() -> None:
    assert "plain y, yes and on" in _told("workdir", value=True)[""]


def test_list_is_not_called_empty_when_its_entries_were_refused() -> None:
    assert _told("argv", [5]) == {"0": "must be a text, found the number 5; write it in quotes"}


def test_refusals_are_explained_up_to_a_number_and_the_rest_counted() -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        Job.parse({"metadata": {"name": "a"}, "spec": {"argv": [5] * 1000}})
    told, more = problems.explain(refused.value, Job)
    assert (len(told), more) == (problems.MAX_EXPLAINED, 1000 - problems.MAX_EXPLAINED)
