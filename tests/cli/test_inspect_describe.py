"""`workron describe` of a job or a workflow."""

import json
import os
import pathlib
import re
import signal

import yaml

from tests.cli.conftest import Call, Start, Write


def test_describe_explains_why_a_job_waits(call: Call, write: Write, url: str) -> None:
    call("submit", write("late", more="dependsOn: [{name: absent}]"), "--store", url)
    result = call("describe", "late", "--store", url)
    assert "waits for 1 of 1 upstreams:" in result.out
    assert "Job 'absent' is not in the store yet; required: Succeeded" in result.out


def test_describe_shows_all_fields_of_a_job(call: Call, done: str) -> None:
    out = call("describe", "flow/bad", "--store", done).out
    assert "Command    echo why; exit 9" in out
    assert "Why        the command ended with exit code 9 (ExitCode)" in out
    assert re.search(r"Attempt 1  Failed in .* exit code 9 on ", out)
    assert "  | why" in out


def test_describe_shows_labels_and_annotations(call: Call, write: Write, url: str) -> None:
    manifest = write("noted")
    notes = "{mine: a note, kubectl.kubernetes.io/last-applied-configuration: the whole of it}"
    manifest.write_text(manifest.read_text().replace("noted}", f"noted, annotations: {notes}}}"))
    call("submit", manifest, "--store", url)
    assert "\nAnnotations mine=a note\n" in call("describe", "noted", "--store", url).out


def test_describe_marks_the_output_when_it_is_cut(call: Call, write: Write, url: str) -> None:
    for name, command in (
        ("few", "seq 20"),
        ("many", "seq 21"),
        ("wide", "head -c 5000 /dev/zero"),
    ):
        call("run", write(name, command=f"{command} | tr '\\0' x"), "--store", url)
    few, many, wide = (call("describe", one, "--store", url).out for one in ("few", "many", "wide"))
    assert "Output\n  | 1\n" in few
    assert "Output  last lines; `workron logs` prints all\n  | 2\n" in many
    assert "Output  last lines" in wide


def test_describe_and_get_report_when_a_pool_has_no_worker(
    call: Call, write: Write, url: str
) -> None:
    call("submit", write("lonely", more="pool: bigg"), "--store", url)
    printed = "pool 'bigg' has no worker"
    assert f"Why        is queued; {printed}" in call("describe", "lonely", "--store", url).out
    for asked in (("get",), ("get", "lonely")):
        assert printed in call(*asked, "--store", url).out


def test_describe_and_get_report_a_cancellation_before_it_takes_effect(
    call: Call, start: Start, write: Write, fresh_database: str,
    tmp_path: pathlib.Path,
) -> None:  # fmt: skip
    os.mkfifo(tmp_path / "on")
    command = f"echo > {tmp_path}/on; sleep 1000"
    run = start("run", write("slow", command=command), "--store", fresh_database)
    (tmp_path / "on").read_text()
    run.send_signal(signal.SIGSTOP)
    call("cancel", "slow", "--store", fresh_database)
    result = call("describe", "slow", "--store", fresh_database).out
    assert "Why        is being cancelled\n           runs on worker" in result
    assert "is being cancelled" in call("get", "slow", "--store", fresh_database).out
    run.kill()
    # The runner has the pipe open until it has killed the command.
    run.communicate()


def test_describe_explains_why_a_workflow_failed(call: Call, done: str) -> None:
    assert "Why        one of its jobs failed" in call("describe", "flow", "--store", done).out


def test_describe_shows_the_result(call: Call, done: str) -> None:
    assert 'Result     {"a": [true, null]}' in call("describe", "flow/one", "--store", done).out


def test_describe_uses_singular_and_plural(call: Call, done: str) -> None:
    out = call("describe", "flow/bad", "--store", done).out
    assert "Counted    1 attempt, 1 failure, 0 losses" in out


def test_describe_shows_the_first_run_when_a_job_waits_for_a_retry(
    call: Call, start: Start, write: Write, url: str
) -> None:
    run = start("run", write("moody", command="exit 1", more="backoff: {initial: 1h}"),
                "--store", url)  # fmt: skip
    assert run.stdout is not None
    assert "Retrying" in run.stdout.readline()
    run.terminate()
    run.communicate()
    out = call("describe", "moody", "--store", url).out
    assert "Started" not in out
    assert re.search(r"First run  2\d{3}-", out)


def test_describe_of_a_workflow_counts_its_jobs(call: Call, done: str) -> None:
    out = call("describe", "flow", "--store", done).out
    assert "Jobs       4: 3 succeeded, 1 failed" in out
    assert "  flow/bad  Failed  the command ended with exit code 9" in out


def test_describe_prints_the_object_with_its_attempts_when_json_is_requested(
    call: Call, done: str
) -> None:
    found = json.loads(call("describe", "flow/bad", "-o", "json", "--store", done).out)
    status = found["status"]
    assert (found["metadata"]["name"], status["exitCode"]) == ("flow.bad", 9)
    [attempt] = status["history"]
    assert (attempt["attempt"], attempt["outcome"], attempt["exitCode"]) == (1, "Failed", 9)
    assert status["why"] == ["the command ended with exit code 9 (ExitCode)"]
    one = json.loads(call("describe", "flow/one", "-o", "json", "--store", done).out)
    assert one["status"]["result"] == {"a": [True, None]}


def test_describe_prints_counts_of_groups_when_yaml_is_requested(call: Call, done: str) -> None:
    array = yaml.safe_load(call("describe", "flow/many", "-o", "yaml", "--store", done).out)
    assert (array["kind"], array["status"]["jobs"]["succeeded"]) == ("Array", 2)
    flow = yaml.safe_load(call("describe", "flow", "-o", "yaml", "--store", done).out)
    assert (flow["kind"], flow["status"]["jobs"]["total"]) == ("Workflow", 4)
    assert flow["status"]["why"] == ["one of its jobs failed"]
