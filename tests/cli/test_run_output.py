"""`workron run` and its readers: output as it comes, results, and a pipe that is closed."""

import os
import pathlib
import subprocess
import sys

import pytest

from tests.cli.conftest import Call, Write
from tests.cli.test_terminal import Terminal


def test_output_of_a_single_job_is_printed_before_it_ends(
    write: Write, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    job = write("hello", command=f"printf '50 %% '; cat {tmp_path}/go; printf done")
    with _started("run", job) as run:
        assert run.stdout is not None
        assert run.stdout.read(5) == b"50 % "
        (tmp_path / "go").write_text("go ")
        rest, _ = run.communicate()
    first, second, _ = rest.decode().splitlines()
    assert first == "go done"
    assert second.startswith("Succeeded  hello  ")
    assert run.returncode == 0


def test_control_sequences_are_removed_when_a_single_job_runs_on_a_terminal(write: Write) -> None:
    terminal = Terminal("run", write("loud", command="printf '\\033[2Jshown\\n'"))
    assert terminal.end() == 0
    assert "\x1b" not in terminal.written.partition("shown\r\n")[0]
    assert "Succeeded" in terminal.written


def test_output_is_on_standard_error_when_json_is_requested(call: Call, write: Write) -> None:
    result = call("run", write("hello", command="echo hi"), "-o", "json")
    assert result.out.startswith("{")
    assert result.err.splitlines()[0] == "hi"


def test_lines_of_all_jobs_have_their_names_when_logs_are_requested(
    call: Call, write: Write
) -> None:
    tasks = ("name: one, command: echo first", "name: many, count: 2, command: echo item")
    lines = call("run", write("flow", *tasks), "--logs").out.splitlines()
    assert "flow/one    | first" in lines
    assert "flow/many/1 | item" in lines
    assert lines.index("flow/one    | first") < next(
        at for at, line in enumerate(lines) if line.startswith("Succeeded  flow/one  ")
    )


def test_last_lines_are_not_repeated_when_logs_are_requested(call: Call, write: Write) -> None:
    bad = "name: bad, command: 'echo why; exit 1', maxAttempts: 1"
    out = call("run", write("flow", bad, "name: b, command: echo"), "--logs").out
    assert out.count("why") == 1


def test_output_is_printed_and_written_when_both_are_requested(
    call: Call, write: Write, tmp_path: pathlib.Path
) -> None:
    out = call("run", write("hello", command="echo hi"), "--output-dir", tmp_path).out
    assert out.startswith("hi\n")
    assert (tmp_path / "hello.log").read_text() == "hi\n"


def test_results_are_printed_when_they_are_requested(call: Call, write: Write) -> None:
    tasks = (
        "name: one, command: 'echo [1, true] > $WORKRON_RESULT'",
        "name: many, count: 2, command: 'echo $WORKRON_INDEX > $WORKRON_RESULT'",
        "name: none, command: echo",
    )
    flow = write("flow", *tasks)
    lines = call("run", flow, "--results").out.splitlines()
    assert lines[-3:] == ["flow/one  [1, true]", "flow/many/0  0", "flow/many/1  1"]
    assert "[1, true]" not in call("run", flow).out


def test_failure_and_its_commands_are_printed_when_a_task_fails(
    call: Call, write: Write, url: str
) -> None:
    bad = "name: bad, command: 'echo the reason; exit 3', maxAttempts: 1"
    result = call("run", write("flow", bad, "name: good, command: echo"), "--store", url)
    lines = result.out.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("Failed     flow/bad  "))
    assert lines[at + 1] == "  | the reason"
    assert lines[-4:] == [
        "failed first: flow/bad  the command ended with exit code 3 (ExitCode)",
        "to see more:",
        f"  workron output flow/bad --store {url}",
        f"  workron describe flow --store {url}",
    ]
    for command in lines[-2:]:
        assert call(*command.split()[1:]).code == 0


def test_failure_is_printed_above_the_table_when_it_happens(
    write: Write, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    bad = "name: bad, command: 'echo the reason; exit 3', maxAttempts: 1"
    flow = write("flow", bad, f"name: slow, command: cat {tmp_path}/go")
    terminal = Terminal("run", flow, "--slots", "2")
    terminal.read_until("  | the reason")
    assert "exit code 3" in terminal.written
    terminal.read_until("✗")
    (tmp_path / "go").write_text("go")
    assert terminal.end() == 1
    assert terminal.written.count("the reason") == 1


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("memory:", "use --store sqlite:///path to be able to resume"),
        (None, "repeat the same command to resume"),
    ],
)
def test_run_stops_when_the_reader_closes_the_output(
    call: Call, write: Write, url: str, store: str | None, message: str
) -> None:
    many = write("flow", "name: fast, command: echo", "name: many, count: 2, command: sleep 1000",
                 "name: next, dependsOn: [{name: fast}], command: 'sleep 0.3'")  # fmt: skip
    with _started("run", many, "--slots", "3", "--store", store or url) as run:
        assert run.stdout is not None
        assert run.stdout.readline().startswith(b"Succeeded  flow/fast")
        run.stdout.close()
        assert run.stderr is not None
        error = run.stderr.read().decode()
        assert run.wait() == 141
    assert error == (
        f"workron: standard output was closed by its reader; not all jobs have run; {message}\n"
    )
    if store is None:
        assert "4: 2 queued, 2 succeeded" in call("describe", "flow", "--store", url).out


def test_single_job_stops_when_the_reader_closes_its_output(write: Write) -> None:
    with _started("run", write("endless", command="yes")) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"y\n"
        run.stdout.close()
        assert run.wait() == 141


def test_exit_code_is_that_of_the_jobs_when_the_output_is_closed_at_the_end(
    write: Write,
) -> None:
    with _started("run", write("hello", command="true")) as run:
        assert run.stdout is not None
        run.stdout.close()
        assert run.stderr is not None
        assert (run.stderr.read(), run.wait()) == (b"", 0)


def test_full_disk_is_reported_once_when_the_output_is_a_file(write: Write) -> None:
    with pathlib.Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "workron", "run", str(write("hello"))]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr == b"workron: standard output: No space left on device\n"


def _started(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "workron", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
