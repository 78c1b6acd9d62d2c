"""`workron submit`: waiting for the end, the output of the jobs, and what it prints."""

import json

import pytest

from tests.cli.conftest import Call, Start, Write

_MOODY = "echo try $WORKRON_ATTEMPT; test $WORKRON_ATTEMPT = 2"
_TASKS = (
    "name: say, command: 'echo first; printf no-line-feed'",
    "name: many, count: 2, command: 'echo $WORKRON_INDEX'",
    f"name: moody, command: '{_MOODY}', backoff: {{initial: 1ms}}",
)


@pytest.fixture
def worked(call: Call, start: Start, url: str) -> str:
    """The URL of a store with a worker and a maintainer."""
    assert call("migrate", "--store", url).code == 0
    start("worker", "--store", url)
    start("maintain", "--store", url)
    return url


def test_submit_prints_names_for_other_commands(call: Call, write: Write, url: str) -> None:
    result = call("submit", write("hello"), "--store", url, "-o", "name")
    assert (result.code, result.out) == (0, "job/hello\n")
    assert call("cancel", result.out.strip(), "--store", url).code == 0


def test_submit_prints_objects_when_json_is_requested(call: Call, write: Write, url: str) -> None:
    result = call("submit", write("flow", *_TASKS), "--store", url, "-o", "json")
    items = json.loads(result.out)["items"]
    assert [item["metadata"]["name"] for item in items][:2] == ["flow", "flow.say"]
    assert items[0]["status"]["phase"] in {"Waiting", "Queued"}


def test_submit_waits_and_prints_the_ended_objects(call: Call, write: Write, worked: str) -> None:
    result = call("submit", write("bad", command="exit 3", more="maxAttempts: 1"),
                  "--store", worked, "--wait", "-o", "json")  # fmt: skip
    [item] = json.loads(result.out)["items"]
    assert (result.code, item["status"]["exitCode"]) == (1, 3)


def test_submit_prints_all_output_with_names(call: Call, write: Write, worked: str) -> None:
    result = call("submit", write("flow", *_TASKS), "--store", worked, "--logs")
    lines = result.out.splitlines()
    assert result.code == 0
    assert (lines[0], lines[-1]) == ("workflow/flow submitted", "workflow/flow Succeeded")
    assert [line for line in lines if line.startswith("flow/say ")] == [
        "flow/say    | first", "flow/say    | no-line-feed",
    ]  # fmt: skip
    assert [line for line in lines if line.startswith("flow/moody")] == [
        "flow/moody  | try 1", "flow/moody  | try 2",
    ]  # fmt: skip
    assert {"flow/many/0 | 0", "flow/many/1 | 1"} <= set(lines)


def test_submit_prints_the_output_of_a_single_job_as_it_is(
    call: Call, write: Write, worked: str
) -> None:
    job = write("hello", command="printf 'a\\nb'; sleep 0.1", more="outputStreamBytes: 100")
    result = call("submit", job, "--store", worked, "--logs")
    assert (result.code, result.out) == (0, "job/hello submitted\na\nb\njob/hello Succeeded\n")


def test_submit_refuses_logs_in_objects(call: Call, write: Write, url: str) -> None:
    result = call("submit", write("hello"), "--store", url, "--logs", "-o", "json")
    assert result.code == 2
    assert "--logs prints the output of jobs; leave out -o json" in result.err


def test_submit_names_allowed_failures_at_the_end(call: Call, write: Write, worked: str) -> None:
    flow = write("flow", "name: lint, command: exit 1, maxAttempts: 1, allowFailure: true")
    result = call("submit", flow, "--store", worked, "--wait")
    assert (result.code, result.out.splitlines()[-1]) == (
        0, "workflow/flow Succeeded: 1 failure allowed: lint",
    )  # fmt: skip
