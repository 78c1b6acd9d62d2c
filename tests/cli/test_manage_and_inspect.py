"""The commands for what is in a store: submit, wait, cancel, get, output."""

import json
import pathlib
import re
from typing import Never

import pytest

from tests.cli.conftest import Call, Write
from workron.store.sqlite.store import SqliteStore


def test_submit_acknowledges_and_exits(call: Call, write: Write, url: str) -> None:
    result = call("submit", write("hello"), write("flow", "name: a, command: b"), "--store", url)
    assert (result.code, result.out) == (0, "job/hello submitted\nworkflow/flow submitted\n")
    assert re.search(r"job/hello +Queued", call("get", "--store", url).out)


def test_submit_changes_nothing_when_the_same_file_is_submitted_again(
    call: Call, write: Write, url: str
) -> None:
    call("submit", write("hello"), "--store", url)
    result = call("submit", write("hello"), "--store", url)
    assert result.out == "job/hello unchanged: already submitted\n"


def test_submit_stores_nothing_when_one_file_is_invalid(call: Call, write: Write, url: str) -> None:
    good, bad = write("good"), write("bad", more="dependsOn: [{name: bad}]")
    assert call("migrate", "--store", url).code == 0
    assert call("submit", good, bad, "--store", url).code == 2
    assert call("get", "good", "--store", url).code == 4


def test_submit_cancels_the_run_when_its_manifest_says_so(
    call: Call, write: Write, url: str
) -> None:
    call("submit", write("hello", more="cancel: true"), "--store", url)
    assert re.search(r"job/hello +Cancelled", call("get", "--store", url).out)


@pytest.mark.parametrize("command", ["submit", "get", "cancel", "wait", "output", "migrate"])
def test_command_is_refused_when_no_store_is_given(call: Call, command: str) -> None:
    result = call(command, *([] if command in {"get", "migrate"} else ["name"]))
    assert result.code == 2
    assert "--store URL" in result.err


@pytest.mark.parametrize("url", ["memory:", "MEMORY:"])
def test_memory_store_is_refused_when_the_command_needs_a_persistent_one(
    call: Call, url: str
) -> None:
    result = call("get", "--store", url)
    assert result.code == 2
    assert "a memory: store is empty, because it ends with the command" in result.err


@pytest.mark.parametrize("command", ["run", "submit", "get", "migrate"])
def test_store_url_is_refused_when_it_is_empty(call: Call, write: Write, command: str) -> None:
    result = call(
        command, *([write("hello")] if command in {"run", "submit"} else []), "--store", ""
    )
    assert result.code == 2
    assert "--store is empty" in result.err


@pytest.mark.parametrize("command", ["get", "wait", "cancel", "describe", "output", "graph"])
def test_no_file_is_created_when_a_command_only_reads(
    call: Call, command: str, tmp_path: pathlib.Path
) -> None:
    result = call(command, "hello", "--store", f"sqlite:///{tmp_path}/typo.db")
    assert result.code == 2
    assert (
        "typo.db does not exist; `workron run`, `workron submit` or `workron migrate`" in result.err
    )
    assert list(tmp_path.iterdir()) == []


def test_store_is_that_of_the_environment_when_no_option_is_given(
    call: Call, write: Write, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKRON_STORE", url)
    assert call("submit", write("hello")).code == 0
    assert "job/hello" in call("get").out


def test_wait_exits_when_all_have_ended(call: Call, done: str) -> None:
    result = call("wait", "flow", "--store", done)
    assert (result.code, result.out) == (1, "workflow/flow Failed: one of its jobs failed\n")


def test_wait_exits_with_5_when_the_timeout_expires(call: Call, write: Write, url: str) -> None:
    call("submit", write("hello"), "--store", url)
    result = call("wait", "hello", "--timeout", "10ms", "--store", url)
    assert (result.code, result.err) == (5, "timed out: not all jobs have ended\n")
    assert result.out == "job/hello Queued\n"


def test_timeout_is_refused_when_it_is_not_a_duration(call: Call, url: str) -> None:
    result = call("wait", "hello", "--timeout", "soon", "--store", url)
    assert result.code == 2
    assert "--timeout: 'soon' is not a duration; write it as 90s" in result.err


def test_waiting_job_is_cancelled(call: Call, write: Write, url: str) -> None:
    call("submit", write("hello"), "--store", url)
    assert call("cancel", "hello", "--store", url).out == "job/hello cancelled\n"
    assert call("wait", "hello", "--store", url).out == "job/hello Cancelled\n"


def _submit_finally(call: Call, folder: pathlib.Path, url: str) -> None:
    flow = folder / "flow.yaml"
    flow.write_text("""
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {name: flow}
spec:
  tasks: [{name: a, command: "true"}]
  finally: [{name: z, command: "true"}]
""")
    call("submit", flow, "--store", url)


@pytest.mark.parametrize("second", [(), ("--force",)])
def test_finally_is_cancelled_by_a_second_cancel_or_by_force(
    call: Call, tmp_path: pathlib.Path, url: str, second: tuple[str, ...]
) -> None:
    _submit_finally(call, tmp_path, url)
    if not second:
        call("cancel", "flow", "--store", url)
        shown = call("describe", "flow/z", "--store", url).out
        assert re.search(r"^State +Queued", shown, re.MULTILINE), shown
    assert call("cancel", "flow", *second, "--store", url).out == "workflow/flow cancelled\n"
    assert call("wait", "flow", "--store", url).out == "workflow/flow Cancelled\n"
    assert "Cancelled" in call("describe", "flow/z", "--store", url).out


def test_waiting_task_of_finally_says_what_it_waits_for(
    call: Call, tmp_path: pathlib.Path, url: str
) -> None:
    _submit_finally(call, tmp_path, url)
    shown = call("describe", "flow/z", "--store", url).out
    assert "starts when all tasks of the workflow have ended (finally)" in shown


def test_cancel_is_refused_when_the_job_has_ended(call: Call, done: str) -> None:
    result = call("cancel", "flow", "--store", done)
    assert result.code == 2
    assert result.err == "workron: Workflow 'flow' has ended; it cannot be cancelled\n"


def test_other_jobs_are_cancelled_when_one_cannot_be(call: Call, write: Write, done: str) -> None:
    call("submit", write("one"), write("two"), "--store", done)
    result = call("cancel", "one", "flow", "two", "flow", "--store", done)
    assert (result.code, result.out) == (2, "job/one cancelled\njob/two cancelled\n")
    assert result.err.count("workron: Workflow 'flow' has ended; it cannot be cancelled\n") == 2


@pytest.mark.parametrize("command", ["get", "wait", "cancel", "describe", "output", "graph"])
def test_exit_code_is_4_when_the_name_is_unknown(call: Call, done: str, command: str) -> None:
    result = call(command, "nobody", "--store", done)
    assert result.code == 4
    assert "no Job or Workflow 'nobody' in namespace 'default'" in result.err


def test_choices_are_listed_when_the_kind_is_unknown(call: Call, url: str) -> None:
    call("migrate", "--store", url)
    result = call("get", "pool/default", "--store", url)
    assert result.code == 4
    assert "where KIND is job or workflow" in result.err


def test_get_lists_all_runs(call: Call, done: str) -> None:
    heading, line = call("get", "--store", done).out.splitlines()
    assert heading.split() == ["NAME", "STATUS", "JOBS", "ATTEMPTS", "TOOK", "AGE", "REASON"]
    assert re.match(r"workflow/flow +Failed +4/4 .* one of its jobs failed$", line)


@pytest.mark.parametrize(
    "arguments",
    [("get",), ("wait", "flow"), ("describe", "flow/many/1"), ("output", "flow/one"),
     ("output", "flow/none"), ("graph", "flow")],
)  # fmt: skip
def test_other_jobs_are_not_read_when_a_command_needs_one_row(
    call: Call, done: str, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    def refuse(*_: object) -> Never:
        raise AssertionError("all jobs of a root are read")

    result = call(*arguments, "--store", done)
    for reader in ("list_jobs", "list_specs"):
        monkeypatch.setattr(SqliteStore, reader, refuse)
    assert call(*arguments, "--store", done) == result


def test_get_counts_the_ended_jobs_of_each_group(call: Call, done: str) -> None:
    lines = call("get", "flow", "--store", done).out.splitlines()[1:]
    counted = {line.split()[0]: line.split()[2] for line in lines}
    assert (counted["workflow/flow"], counted["flow/many"]) == ("4/4", "2/2")


def test_get_prints_a_message_when_the_namespace_is_empty(call: Call, url: str) -> None:
    call("migrate", "--store", url)
    result = call("get", "--store", url)
    assert (result.code, result.out, result.err) == (
        0,
        "",
        "no jobs or workflows in namespace 'default'\n",
    )


def test_get_lists_the_jobs_when_a_workflow_is_named(call: Call, done: str) -> None:
    lines = call("get", "flow", "--store", done).out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [
        "workflow/flow", "flow/one", "flow/many", "flow/many/0", "flow/many/1", "flow/bad",
    ]  # fmt: skip


def test_get_prints_objects_with_their_status_when_json_is_requested(call: Call, done: str) -> None:
    items = json.loads(call("get", "workflow/flow", "-o", "json", "--store", done).out)["items"]
    by_name = {item["metadata"]["name"]: item for item in items}
    assert by_name["flow"]["status"]["jobs"]["succeeded"] == 3
    bad = by_name["flow.bad"]
    assert bad["apiVersion"] == "workron.dev/v1alpha1"
    assert bad["status"]["exitCode"] == 9
    assert bad["status"]["outputTail"] == "why\n"
    assert by_name["flow.many.1"]["metadata"]["labels"]["workron.dev/workflow"] == "flow"


def test_get_prints_an_empty_list_when_json_is_requested_and_the_namespace_is_empty(
    call: Call, url: str
) -> None:
    call("migrate", "--store", url)
    assert json.loads(call("get", "-o", "json", "--store", url).out) == {"items": []}


@pytest.mark.parametrize(
    ("name", "output"), [("flow/one", "out\n"), ("flow/many/1", "1\n"), ("flow/bad", "why\n")]
)
def test_output_prints_the_bytes_that_a_job_wrote(
    call: Call, done: str, name: str, output: str
) -> None:
    result = call("output", name, "--store", done)
    assert (result.code, result.out) == (0, output)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("flow", "like flow/TASK"), ("flow/many", "like flow/many/0")],
)
def test_output_names_an_example_when_the_name_is_a_group(
    call: Call, done: str, name: str, complaint: str
) -> None:
    result = call("output", name, "--store", done)
    assert result.code == 2
    assert complaint in result.err


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("flow/none", "; its tasks: one, many, bad"),
        ("flow/many/2", ": many has elements 0 to 1"),
        ("flow/one/0", ": one is a single job"),
    ],
)
def test_tasks_are_listed_when_the_task_is_unknown(
    call: Call, done: str, name: str, printed: str
) -> None:
    result, part = call("output", name, "--store", done), name.removeprefix("flow/")
    assert (result.code, result.err) == (4, f"workron: Workflow 'flow' has no '{part}'{printed}\n")


def test_name_is_refused_without_its_kind_when_both_kinds_have_it(
    call: Call, write: Write, url: str
) -> None:
    call("submit", write("x"), "--store", url)
    call("submit", write("x", "name: a, command: b"), "--store", url)
    result = call("cancel", "x", "--store", url)
    assert result.code == 2
    assert "write job/x or workflow/x" in result.err
    assert re.search(r"Kind +Job of Workflow x", call("describe", "x/a", "--store", url).out)
    assert call("cancel", "workflow/x", "--store", url).out == "workflow/x cancelled\n"


def test_job_is_found_when_its_namespace_is_part_of_the_name(
    call: Call, write: Write, url: str
) -> None:
    assert call("submit", write("hello"), "-n", "team", "--store", url).code == 0
    for name in ("team/hello", "job/team/hello"):
        assert re.search(r"Namespace +team", call("describe", name, "--store", url).out)
        assert call("get", name, "--store", url).out.count("job/hello") == 1
    assert call("output", "team/hello", "--store", url).code == 0
    assert call("cancel", "team/hello", "--store", url).out == "job/hello cancelled\n"
    assert "job/hello Cancelled" in call("wait", "team/hello", "--store", url).out


@pytest.mark.parametrize("name", ["flow.many.1", "job/flow.many.1", "default/flow.many.1"])
def test_job_is_found_by_its_name_as_an_object(call: Call, done: str, name: str) -> None:
    assert call("output", name, "--store", done).out == "1\n"


def test_run_is_preferred_when_a_task_has_its_name_as_an_object(
    call: Call, write: Write, done: str
) -> None:
    call("submit", write("flow.many"), "--store", done)
    assert re.search(r"Kind +Job\n", call("describe", "flow.many", "--store", done).out)
    for name in ("flow.many.1", "flow/many"):
        assert re.search(r"Kind .* of Workflow", call("describe", name, "--store", done).out)
    assert call("get", "workflow/flow.many", "--store", done).code == 4


def test_job_is_found_by_its_id_in_any_namespace(call: Call, write: Write, done: str) -> None:
    call("submit", write("hello"), "-n", "team", "--store", done)
    items = call("get", "flow", "-o", "wide", "--store", done).out.splitlines()
    ids = {line.split()[0]: re.findall(r" (\d{10,}) ", line)[0] for line in items[1:]}
    assert call("output", ids["flow/many/1"], "--store", done).out == "1\n"
    assert call("wait", ids["workflow/flow"], "--store", done).out.startswith("workflow/flow ")
    [line] = call("get", "-n", "team", "-o", "wide", "--store", done).out.splitlines()[1:]
    [other] = re.findall(r" (\d{10,}) ", line)
    assert call("cancel", other, "--store", done).out == "job/hello cancelled\n"
    result = call("cancel", ids["flow/bad"], "--store", done)
    assert result.code == 2
    assert "is a part of Workflow 'flow'; this command needs the whole" in result.err


@pytest.mark.parametrize("name", ["12345", "9" * 30])
def test_exit_code_is_4_when_no_job_has_the_id(call: Call, done: str, name: str) -> None:
    assert call("describe", name, "--store", done).code == 4


def test_task_is_preferred_when_a_namespace_has_the_name_of_the_workflow(
    call: Call, write: Write, done: str
) -> None:
    call("submit", write("one"), "-n", "flow", "--store", done)
    assert call("output", "flow/one", "--store", done).out == "out\n"
    assert call("get", "flow/one", "--store", done).code == 2
    assert re.search(r"Namespace +flow", call("describe", "one", "-n", "flow", "--store", done).out)


def test_all_meanings_are_named_when_none_exists(call: Call, done: str) -> None:
    result = call("describe", "nobody/nothing", "--store", done)
    assert result.code == 4
    for what in ("'nobody' in namespace 'default'", "'nothing' in namespace 'nobody'"):
        assert f"no Job or Workflow {what}" in result.err
