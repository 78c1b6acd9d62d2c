"""The messages on invalid manifests, one for each kind of problem."""

import pydantic
import pytest

from workron.core.manifest import problems
from workron.core.model.job import Job
from workron.core.model.workflow import Workflow


def _explained(field: str, value: object) -> dict[str, str]:
    task: dict[str, object] = {"name": "a", "command": "true"}
    spec = {"tasks": [task | {field: value}]}
    with pytest.raises(pydantic.ValidationError) as refused:
        Workflow.parse({"metadata": {"name": "w"}, "spec": spec})
    where = ("spec", "tasks", 0, field)
    explained, _ = problems.explain(refused.value, Workflow)
    return {".".join(map(str, path[len(where) :])): message for path, message in explained}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("pool", 5, "must be a text, found the number 5; write it in quotes"),
        ("pool", ["a"], "must be a text, found a list"),
        ("count", "5", "must be a whole number, found the text '5'; remove the quotes"),
        ("count", 1.5, "must be a whole number, found the number 1.5"),
        ("count", {}, "must be a whole number, found a mapping"),
        ("count", 0, "must be at least 1, found 0"),
        ("count", 200_000, "must be at most 100,000, found 200,000"),
        ("retryOn", 75, "must be a list, found the number 75; write retryOn: [75]"),
        ("argv", [], "is empty; at least one entry is needed"),
        ("env", [{"name": "A"}] * 1001, "has 1,001 entries; at most 1,000 are allowed"),
        ("backoff", [], "must be a mapping, found a list; write backoff: {initial: 5s}"),
        ("command", ["ls"], "must be a text, found a list; write a list of arguments as argv"),
        (
            "overlap",
            "allow",
            "must be one of Allow, Forbid, found the text 'allow'; did you mean Allow?",
        ),
        ("timeout", 5, "5 has no unit; write it as 90s, 5m, 1h30m or 500ms"),
        ("maxattempts", 5, "there is no such field here; did you mean maxAttempts?"),
        ("max_attempts", 5, "there is no such field here; did you mean maxAttempts?"),
        ("depends-on", 5, "there is no such field here; did you mean dependsOn?"),
    ],
)
def test_problem_names_the_found_and_the_allowed_value(
    field: str, value: object, message: str
) -> None:
    assert _explained(field, value) == {"": message}


@pytest.mark.parametrize(
    ("field", "value", "explained"),
    [
        ("backoff", {"factor": True}, {"factor": "must be a number, found true"}),
        ("dependsOn", [{}], {"0.name": "is required"}),
        ("dependsOn", [{"name": "b", "each": 1}], {"0.each": "must be true or false"}),
        ("dependsOn", [{"name": "b", "when": "x"}], {"0.when": "must be one of Succeeded, Failed"}),
        ("dependsOn", [{"name": "b", "kinds": "Job"}], {"0.kinds": "did you mean kind?"}),
        ("env", [{"name": "A", "valuex": ""}], {"0.valuex": "did you mean value?"}),
    ],
)
def test_problem_names_the_path_when_it_is_within_a_field(
    field: str, value: object, explained: dict[str, str]
) -> None:
    found = _explained(field, value)
    assert found.keys() == explained.keys()
    assert all(explained[path] in message for path, message in found.items())


def test_boolean_is_explained_when_a_word_was_read_as_one() -> None:
    assert "in YAML a plain y, yes, on" in _explained("workdir", value=True)[""]


def test_list_is_not_called_empty_when_its_entries_are_invalid() -> None:
    assert _explained("argv", [5]) == {
        "0": "must be a text, found the number 5; write it in quotes"
    }


def test_rest_of_the_problems_is_counted_when_there_are_too_many() -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        Job.parse({"metadata": {"name": "a"}, "spec": {"argv": [5] * 1000}})
    explained, more = problems.explain(refused.value, Job)
    assert (len(explained), more) == (problems.MAX_EXPLAINED, 1000 - problems.MAX_EXPLAINED)
