"""The commands that need no jobs: graph, validate, migrate, version and help."""

import pathlib

import pytest

from tests.cli.conftest import Call, Write

_FLOW = (
    "name: a, command: 'true'",
    "name: b, count: 3, command: 'true', dependsOn: [{name: a}]",
    "name: c, command: 'true', dependsOn: [{name: b, when: Finished}]",
)


def test_graph_draws_a_tree_of_a_file(call: Call, write: Write) -> None:
    lines = call("graph", write("flow", *_FLOW)).out.splitlines()
    assert [line.strip("└─├│ ") for line in lines] == ["a", "b[0..2]", "c (when Finished)"]


def test_graph_draws_mermaid(call: Call, write: Write) -> None:
    out = call("graph", write("flow", *_FLOW), "--format", "mermaid").out
    assert out.startswith("flowchart LR\n")
    assert out.count("-->") == 2


def test_graph_is_refused_when_the_name_is_too_long_for_a_path(call: Call) -> None:
    result = call("graph", "a" * 300)
    assert (result.code, "is not a file" in result.err) == (2, True)


def test_choices_are_listed_when_the_value_is_unknown(call: Call) -> None:
    assert (
        "'--format': 'svg' is not one of: tree, mermaid"
        in call("graph", "x", "--format", "svg").err
    )


def test_graph_of_a_stored_run_equals_that_of_its_file(call: Call, write: Write, url: str) -> None:
    path = write("flow", *_FLOW)
    call("submit", path, "--store", url)
    assert call("graph", "flow", "--store", url).out == call("graph", path).out


def test_graph_shows_the_dependencies_of_jobs(call: Call, write: Write, url: str) -> None:
    path = write("late", more="dependsOn: [{name: early}]")
    call("submit", path, "--store", url)
    assert "late" in call("graph", "late", "--store", url).out
    assert "early (external)" in call("graph", path).out


def test_graph_requests_a_store_when_the_file_does_not_exist(call: Call) -> None:
    result = call("graph", "absent.yaml")
    assert result.code == 2
    assert "absent.yaml is not a file" in result.err


@pytest.mark.parametrize("name", ["nofile.yaml", "dir/nofile.yaml", "a/b/c/d/e.yaml"])
def test_graph_reports_both_when_neither_file_nor_run_exists(
    call: Call, url: str, name: str
) -> None:
    call("migrate", "--store", url)
    result = call("graph", name, "--store", url)
    assert result.code == (2 if name.startswith("a/") else 4)
    assert result.err.startswith(f"workron: {name} is not a file; ")


def test_validate_reports_what_the_files_contain(call: Call, write: Write) -> None:
    result = call("validate", write("flow", *_FLOW), write("hello"))
    assert result.code == 0
    assert result.out == "workflow/flow is valid: 5 jobs\njob/hello is valid: 1 job\n"


@pytest.mark.parametrize(
    ("task", "complaint"),
    [
        ("name: a, command: b, dependsOn: [{name: a}]", "depends on itself"),
        ("name: a, command: b, dependsOn: [{name: z}]", "which is not a task of this workflow"),
        ("name: a, comand: b", "command"),
    ],
)
def test_validate_names_file_and_line_when_a_field_is_invalid(
    call: Call, write: Write, task: str, complaint: str
) -> None:
    path = write("flow", task)
    result = call("validate", path)
    assert result.code == 2
    assert complaint in result.err
    assert f"{path}:" in result.err


@pytest.mark.parametrize(
    ("tasks", "line", "complaint"),
    [
        (("name: a", "name: b, dependsOn: [{name: c}]", "name: c, dependsOn: [{name: b}]"), 8,
         "depend on each other in a cycle"),
        (("name: a", "name: loader", "name: c, dependsOn: [{name: a}, {name: loadr}]"), 9,
         "'loadr', which is not a task of this workflow; did you mean 'loader'?"),
        (("name: a", "name: b", "name: a"), 9, "two tasks are named 'a'"),
        (("name: a, count: 2", "name: b, count: 3, dependsOn: [{name: a, each: true}]"), 8,
         "depends on each of 'a'"),
    ],
)  # fmt: skip
def test_validate_names_the_line_of_the_task_when_a_dag_is_invalid(
    call: Call, write: Write, tasks: tuple[str, ...], line: int, complaint: str
) -> None:
    path = write("flow", *(f"{task}, command: echo" for task in tasks))
    result = call("validate", path)
    assert result.err.startswith(f"workron: {path}:{line}: Workflow 'flow': ")
    assert complaint in result.err


def test_validate_names_the_line_when_a_job_depends_on_itself(call: Call, write: Write) -> None:
    path = write("own", more="dependsOn: [{name: own}]")
    assert call("validate", path).err.startswith(f"workron: {path}:8: Job 'own' depends on itself")


def test_validate_reports_a_cycle_when_it_spans_several_jobs(call: Call, write: Write) -> None:
    one = write("one", more="dependsOn: [{name: two}]")
    assert call("validate", one, write("two", more="dependsOn: [{name: one}]")).code == 2


def test_migrate_creates_the_schema_once(call: Call, url: str) -> None:
    assert call("migrate", "--store", url).code == 0
    result = call("migrate", "--store", url)
    assert (result.code, result.out) == (0, "the schema is up to date\n")


def test_version_is_printed(call: Call) -> None:
    result = call("version")
    assert (result.code, result.out.split()[0]) == (0, "workron")
    assert call("--version") == result


def test_help_lists_the_exit_codes(call: Call) -> None:
    out = " ".join(call("--help").out.split())
    assert "3 the store cannot be reached or refuses, 4 no such job or workflow" in out
    assert "5 --timeout expired, 129 terminated by SIGHUP" in out
    assert "143 terminated by SIGTERM" in out


def test_graph_shows_finally_and_other_runs(call: Call, tmp_path: pathlib.Path) -> None:
    flow = tmp_path / "flow.yaml"
    flow.write_text("""
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {name: flow}
spec:
  tasks: [{name: a, command: x, dependsOn: [{name: a, kind: Job}]}]
  finally: [{name: z, command: x}]
""")
    assert call("graph", flow).out.splitlines() == [
        "job/a (external)",
        "└── a",
        "(finally)",
        "└── z",
    ]
