"""The commands that suspend and resume whole runs."""

import re

from tests.cli.conftest import Call, Write


def test_suspended_run_waits_until_it_is_resumed(call: Call, write: Write, url: str) -> None:
    call("submit", write("hello"), write("flow", "name: a, command: b"), "--store", url)
    result = call("suspend", "hello", "flow", "--store", url)
    note = "suspended: running jobs finish, no new ones start"
    assert (result.code, result.out) == (0, f"job/hello {note}\nworkflow/flow {note}\n")
    assert "Why        is suspended" in call("describe", "hello", "--store", url).out
    result = call("resume", "hello", "--store", url)
    assert (result.code, result.out) == (0, "job/hello resumed\n")
    assert re.search(r"job/hello +Queued", call("get", "--store", url).out)


def test_other_runs_are_suspended_when_one_has_ended(call: Call, write: Write, done: str) -> None:
    call("submit", write("hello"), "--store", done)
    result = call("suspend", "flow", "hello", "--store", done)
    assert result.code == 2
    assert result.out.startswith("job/hello suspended")
    assert result.err == (
        "workron: Workflow 'flow' has ended or is being cancelled; it cannot be suspended\n"
    )
    assert call("resume", "flow", "--store", done).code == 2


def test_ended_run_is_unknown_when_it_was_deleted(call: Call, write: Write, done: str) -> None:
    call("submit", write("hello"), "--store", done)
    result = call("delete", "flow", "hello", "--store", done)
    assert (result.code, result.out) == (2, "workflow/flow deleted\n")
    assert result.err == (
        "workron: Job 'hello' has not ended; to cancel it, use `workron cancel`\n"
    )
    assert call("describe", "flow", "--store", done).code == 4
    assert call("output", "flow/one", "--store", done).code == 4
    assert _names(call("get", "--store", done).out) == ["job/hello"]


def test_run_is_kept_when_another_one_needs_it(call: Call, write: Write, url: str) -> None:
    call("run", write("up"), "--store", url)
    call("submit", write("down", more="dependsOn: [{name: up}]"), "--store", url)
    result = call("delete", "up", "--store", url)
    assert result.code == 2
    assert "Job 'up' is needed: an unfinished job of another run depends on it" in result.err
    call("cancel", "down", "--store", url)
    assert call("delete", "up", "down", "--store", url).code == 0
    assert call("get", "--store", url).out == ""


def _names(out: str) -> list[str]:
    return [line.split()[0] for line in out.splitlines()[1:]]
