"""Files to manifests: kinds, lists, places, and the list of problems."""

import pytest

from workron.core import errors
from workron.core.manifest import load
from workron.core.model.job import Job
from workron.core.model.workerpool import WorkerPool
from workron.core.model.workflow import Workflow

_HEAD = "apiVersion: workron.dev/v1alpha1\n"
_JOB = _HEAD + "kind: Job\nmetadata: {name: %s}\nspec: {command: 'true'}\n"


def _read(*texts: str) -> list[load.Manifest]:
    return load.load(
        load.ManifestSource(f"{number}.yaml", text.encode()) for number, text in enumerate(texts, 1)
    )


def _problems(*texts: str) -> tuple[str, ...]:
    with pytest.raises(errors.ManifestError) as refused:
        _read(*texts)
    return refused.value.problems


def test_objects_of_all_kinds_and_files_are_read_in_order() -> None:
    flow = _HEAD + "kind: Workflow\nmetadata: {name: f}\nspec: {tasks: [{name: a, command: b}]}\n"
    pool = _HEAD + "kind: WorkerPool\nmetadata: {name: p}\n"
    found = _read(_JOB % "a" + "---\n" + flow, pool)
    assert [type(m.resource) for m in found] == [Job, Workflow, WorkerPool]
    assert [m.source for m in found] == ["1.yaml", "1.yaml", "2.yaml"]


def test_place_is_the_line_of_a_field() -> None:
    second = _read(_JOB % "a" + "---\n" + _JOB % "b")[1]
    assert second.place() == "1.yaml:6"
    assert second.place("spec", "command") == "1.yaml:9"


def test_list_is_read_as_its_items_which_keep_their_lines() -> None:
    item = "\n".join("    " + line for line in (_JOB % "b").splitlines())
    text = f"apiVersion: v1\nkind: List\nmetadata: {{resourceVersion: ''}}\nitems:\n-{item[1:]}\n"
    [manifest] = _read(text)
    assert manifest.place("spec", "command") == "1.yaml:8"
    [problem] = _problems(text.replace("command", "commandx"))
    assert problem.startswith(
        "1.yaml:8: items[0].spec.commandx: there is no such field here; did you"
    )


def test_list_of_one_kind_is_read_too() -> None:
    items = "items: [{apiVersion: workron.dev/v1alpha1, kind: WorkerPool, metadata: {name: p}}]"
    assert len(_read(_HEAD + "kind: WorkerPoolList\n" + items)) == 1


def test_list_is_rejected_when_it_has_no_items() -> None:
    [problem] = _problems("apiVersion: v1\nkind: List\nitems: {}\n")
    assert problem == "1.yaml:3: items: must be a list, found a mapping"


def test_generated_name_is_left_to_the_caller() -> None:
    job = (_JOB % "x").replace("name:", "generateName:")
    first, second = _read(job, job)
    assert first.resource.metadata.name is None
    assert second.resource.metadata.generate_name == "x"


def test_name_is_rejected_when_two_objects_of_a_kind_have_it() -> None:
    [problem] = _problems(_JOB % "a" + "---\n" + _JOB % "b", _JOB % "a")
    assert problem == (
        "2.yaml:3: metadata.name: Job 'a' of namespace 'default' is already in 1.yaml:3; "
        "give each its own name"
    )


def test_name_is_accepted_twice_when_kind_or_namespace_differ() -> None:
    pool = _HEAD + "kind: WorkerPool\nmetadata: {name: a}\n"
    assert len(_read(_JOB % "a", _JOB % "a, namespace: b", pool)) == 3


def test_problems_of_all_files_are_reported_together() -> None:
    problem = _problems(_JOB % "A", _JOB % "a", "x: }\n", _JOB % "B")
    assert [line[:9] for line in problem] == ["1.yaml:3:", "3.yaml:1:", "4.yaml:3:"]


def test_first_twenty_problems_of_a_file_are_reported_by_line() -> None:
    tasks = "".join(f"  - {{name: T{n}, command: x}}\n" for n in range(500))
    problem = _problems(_HEAD + f"kind: Workflow\nmetadata: {{name: A}}\nspec:\n  tasks:\n{tasks}")
    assert len(problem) == 21
    assert problem[0].startswith("1.yaml:3: metadata.name: 'A' is not a name")
    assert problem[19].startswith("1.yaml:24: spec.tasks[18].name: 'T18' is not a name")
    assert problem[20] == "1.yaml: and 481 more problems like these"


def test_place_is_reported_once_when_reader_and_model_reject_it() -> None:
    [problem] = _problems((_JOB % "a").replace("}\n", ", timeout: .inf}\n").replace("a, t", "a}#"))
    assert "infinite or not a number" in problem


def test_manifest_of_1_4_megabytes_is_read() -> None:
    tasks = "".join(f"  - {{name: t{n}, command: {'x' * 13_990}}}\n" for n in range(100))
    text = _HEAD + f"kind: Workflow\nmetadata: {{name: a}}\nspec:\n  tasks:\n{tasks}"
    assert len(text) > 1_400_000
    [manifest] = _read(text)
    assert manifest.place("spec", "tasks", 99) == "1.yaml:105"


def test_no_manifest_is_returned_when_there_are_no_files() -> None:
    assert _read() == []
