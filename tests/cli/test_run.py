"""`workron run`, from manifests to the exit code."""

import json
import pathlib

import pytest

from tests.cli.conftest import Call, Write


def test_run_exits_with_0_when_all_succeeded(call: Call, write: Write) -> None:
    result = call("run", write("hello", command="echo hi"))
    assert result.code == 0
    assert "Succeeded  hello" in result.out
    assert "1 job in" in result.out


def test_run_exits_with_1_when_a_job_failed(call: Call, write: Write) -> None:
    result = call("run", write("bad", command="echo the reason; exit 3", more="maxAttempts: 1"))
    assert result.code == 1
    first, second, *_ = result.out.splitlines()
    assert first == "the reason"
    assert second.startswith("Failed     bad  ")
    assert second.endswith("  the command ended with exit code 3 (ExitCode)")
    assert result.out.count("the reason") == 1


def test_run_exits_with_1_when_another_task_runs_after_the_failure(
    call: Call, write: Write
) -> None:
    tasks = (
        'name: bad, command: "exit 1", maxAttempts: 1',
        "name: undo, command: echo, dependsOn: [{name: bad, when: Failed}]",
    )
    result = call("run", write("flow", *tasks))
    assert result.code == 1
    assert "1 succeeded, 1 failed" in result.out


def test_run_exits_with_0_and_names_the_failures_when_they_are_allowed(
    call: Call, write: Write
) -> None:
    tasks = (
        'name: lint, command: "exit 1", maxAttempts: 1, allowFailure: true',
        'name: fetch, command: "exit $WORKRON_INDEX", maxAttempts: 1, count: 2, maxFailures: 1',
    )
    result = call("run", write("flow", *tasks))
    assert result.code == 0
    assert "flow  Succeeded  2 failures allowed: lint, fetch/1" in result.out


def test_run_exits_with_1_when_a_job_is_skipped_because_of_a_failure(
    call: Call, write: Write
) -> None:
    bad = write("bad", command="exit 1", more="maxAttempts: 1")
    result = call("run", bad, write("next", more="dependsOn: [{name: bad}]"))
    assert result.code == 1
    assert "Skipped    next  an upstream job failed" in result.out


def test_note_is_printed_when_a_file_has_a_pool(
    call: Call, write: Write, tmp_path: pathlib.Path
) -> None:
    pool = tmp_path / "pool.yaml"
    pool.write_text("{apiVersion: workron.dev/v1alpha1, kind: WorkerPool, metadata: {name: big}}")
    result = call("run", pool, write("hello"))
    assert result.code == 0
    assert (
        "workerpool/big ignored: only the controller in a cluster creates worker pods" in result.out
    )


def test_run_exits_with_0_when_a_job_was_not_needed(call: Call, write: Write) -> None:
    undo = write("undo", command="exit 1", more="dependsOn: [{name: good, when: Failed}]")
    result = call("run", undo, write("good"))
    assert result.code == 0
    assert "Skipped    undo  not needed" in result.out


def test_line_is_printed_when_a_job_is_retried(call: Call, write: Write) -> None:
    command = 'test "$WORKRON_ATTEMPT" = 2'
    result = call("run", write("moody", command=command, more="backoff: {initial: 300ms}"))
    assert result.code == 0
    assert "Retrying   moody  failed once" in result.out


def test_run_reads_files_in_any_order_and_standard_input(call: Call, write: Write) -> None:
    late = write("late", more="dependsOn: [{name: early}]")
    early = write("early").read_text()
    result = call("run", late, "-", stdin=early)
    assert result.code == 0
    assert result.out.index("early") < result.out.index("late")


def test_progress_is_on_standard_error_when_json_is_requested(call: Call, write: Write) -> None:
    tasks = ("name: one, command: echo out", "name: many, count: 2, command: echo out")
    result = call("run", write("flow", *tasks), "-o", "json")
    items = json.loads(result.out)["items"]
    assert [(item["kind"], item["metadata"]["name"]) for item in items] == [
        ("Workflow", "flow"),
        ("Job", "flow.one"),
        ("Job", "flow.many.0"),
        ("Job", "flow.many.1"),
    ]
    assert {item["status"]["phase"] for item in items} == {"Succeeded"}
    assert "Succeeded  flow/one" in result.err


def test_output_of_each_job_is_written_when_a_folder_is_given(
    call: Call, write: Write, tmp_path: pathlib.Path
) -> None:
    command = "head -c 300000 /dev/zero | tr '\\\\0' x"
    flow = write("flow", f'name: long, command: "{command}"', "name: many, count: 1, command: echo")
    assert call("run", flow, "--output-dir", tmp_path / "deep/logs").code == 0
    logs = tmp_path / "deep/logs"
    assert sorted(path.name for path in logs.iterdir()) == ["flow.long.log", "flow.many.0.log"]
    assert (logs / "flow.long.log").stat().st_size == 300_000


def test_output_file_has_only_the_last_attempt_when_a_job_is_retried(
    call: Call, write: Write, tmp_path: pathlib.Path
) -> None:
    command = 'echo "$WORKRON_ATTEMPT"; test "$WORKRON_ATTEMPT" = 2'
    job = write("moody", command=command, more="backoff: {initial: 1ms}")
    assert call("run", job, "--output-dir", tmp_path).code == 0
    assert (tmp_path / "moody.log").read_text() == "2\n"


def test_output_folder_is_refused_when_it_cannot_be_created(call: Call, write: Write) -> None:
    result = call("run", write("hello"), "--output-dir", "/dev/null/x")
    assert result.code == 2
    assert "--output-dir /dev/null/x: Not a directory; give a writable folder" in result.err


def test_namespace_of_the_option_is_in_the_environment_of_the_job(
    call: Call, write: Write, url: str
) -> None:
    assert call("run", write("hello"), "-n", "team", "--store", url).code == 0
    assert "hello" in call("get", "-n", "team", "--store", url).out
    assert call("get", "hello", "--store", url).code == 4


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        ("kind: Job", "apiVersion: is required; write apiVersion"),
        ("{", "is not YAML"),
        ("", "has no object"),
        ("\x00", "standard input:1"),
    ],
)
def test_nothing_runs_when_a_manifest_is_invalid(call: Call, manifest: str, complaint: str) -> None:
    result = call("run", "-", stdin=manifest)
    assert result.code == 2
    assert complaint in result.err
    assert "Traceback" not in result.err
    assert result.out == ""


def test_error_shows_the_cycle_when_jobs_depend_on_each_other(call: Call, write: Write) -> None:
    one = write("one", more="dependsOn: [{name: two}]")
    result = call("run", one, write("two", more="dependsOn: [{name: one}]"), write("three"))
    assert result.code == 2
    first, *places = result.err.splitlines()
    assert "jobs wait for each other:" in first
    assert [line.rpartition("/")[2] for line in places] == ["one.yaml:2: one", "two.yaml:2: two"]


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ("dependsOn: [{name: absent}]", "depends on Job 'absent', which is in none of the files"),
        ("suspend: true", "is suspended, and no other process can resume it"),
    ],
)
def test_run_in_memory_is_refused_when_it_could_never_end(
    call: Call, write: Write, more: str, complaint: str
) -> None:
    result = call("run", write("hello", more=more))
    assert result.code == 2
    assert complaint in result.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["/no/such/file.yaml"], "/no/such/file.yaml: No such file or directory"),
        (["/"], "/: Is a directory"),
        (["-", "-"], "standard input can be read only once"),
        (["-", "--store", "mysql://x"], "is not the URL of a store"),
        (["-", "--slots", "0"], "0 is not in the range 1<=x<=1000"),
        ([], "Missing argument"),
    ],
)
def test_message_explains_the_usage_when_it_is_wrong(
    call: Call, arguments: list[str], complaint: str
) -> None:
    hello = "{apiVersion: workron.dev/v1alpha1, kind: Job, metadata: {name: a}, spec: {command: a}}"
    result = call("run", *arguments, stdin=hello)
    assert result.code == 2
    assert complaint in result.err
    assert "Traceback" not in result.err


def test_message_explains_when_standard_input_is_closed(call: Call) -> None:
    result = call("validate", "-", stdin=None)
    assert (result.code, "standard input is closed" in result.err) == (2, True)


def test_scheme_of_the_store_is_case_insensitive(call: Call, write: Write) -> None:
    result = call("run", write("hello", more="suspend: true"), "--store", "MEMORY:")
    assert (result.code, "no other process can resume it" in result.err) == (2, True)


def test_run_is_refused_when_the_files_have_only_pools(call: Call) -> None:
    pool = "{apiVersion: workron.dev/v1alpha1, kind: WorkerPool, metadata: {name: big}}"
    result = call("run", "-", stdin=pool)
    assert result.code == 2
    assert "nothing to run" in result.err


def test_job_of_any_pool_is_run(call: Call, write: Write) -> None:
    assert call("run", write("hello", more="pool: gpu"), write("other")).code == 0
