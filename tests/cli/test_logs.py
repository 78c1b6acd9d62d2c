"""`workron logs`: which attempt is printed, and the output of all failed jobs."""

import pytest

from tests.cli.conftest import Call, Write

_RETRIED = "maxAttempts: 3\n  backoff: {initial: 1ms}"


@pytest.fixture
def retried(call: Call, write: Write, url: str) -> str:
    """The URL of a store in which a job has failed twice before it succeeded."""
    command = 'echo "this is $WORKRON_ATTEMPT"; test "$WORKRON_ATTEMPT" = 3'
    assert call("run", write("moody", command=command, more=_RETRIED), "--store", url).code == 0
    return url


@pytest.mark.parametrize(
    ("options", "out", "err"),
    [
        ((), "this is 3\n", "workron: attempt 3 of 3, succeeded\n"),
        (("-f",), "this is 3\n", "workron: attempt 3 of 3, succeeded\n"),
        (("--attempt", "1"), "this is 1\n", "workron: attempt 1 of 3, retried: exit code 1\n"),
    ],
)
@pytest.mark.parametrize("command", ["logs", "output"])
def test_logs_name_the_attempt_when_a_job_had_several(
    call: Call, retried: str, command: str, options: tuple[str, ...], out: str, err: str
) -> None:
    result = call(command, "moody", *options, "--store", retried)
    assert (result.code, result.out, result.err) == (0, out, err)


def test_logs_print_an_older_attempt_when_the_newest_has_no_output(
    call: Call, write: Write, url: str
) -> None:
    command = 'test "$WORKRON_ATTEMPT" = 2 || { echo first; exit 1; }'
    call("run", write("quiet", command=command, more=_RETRIED), "--store", url)
    result = call("logs", "quiet", "--store", url)
    assert result.out == "first\n"
    assert result.err == "workron: attempt 1 of 2, retried: exit code 1\n"


def test_attempt_is_not_found_when_the_job_had_fewer(call: Call, retried: str) -> None:
    result = call("logs", "moody", "--attempt", 4, "--store", retried)
    assert (result.code, result.err) == (4, "workron: moody has no attempt 4; it has had 3\n")


def test_output_of_failed_jobs_is_printed_with_their_names(
    call: Call, write: Write, url: str
) -> None:
    odd = "echo $WORKRON_INDEX; exit $((1 - $WORKRON_ITEM))"
    tasks = (
        "name: good, command: echo good",
        "name: bad, command: 'printf no-line-feed; exit 9', maxAttempts: 1",
        f"name: many, items: [0, 1, 0], maxAttempts: 1, command: '{odd}'",
    )
    call("run", write("flow", *tasks), "--store", url, "--slots", 1)
    expected = (
        "==> flow/bad: the command ended with exit code 9 (ExitCode) <==\nno-line-feed\n"
        "\n==> flow/many/0: the command ended with exit code 1 (ExitCode) <==\n0\n"
        "\n==> flow/many/2: the command ended with exit code 1 (ExitCode) <==\n2\n"
    )
    assert call("logs", "flow", "--failed", "--store", url).out == expected
    assert call("logs", "flow/many", "--failed", "--store", url).out.count("==> ") == 2
    own = call("logs", "flow/bad", "--failed", "--store", url).out
    assert own == expected.partition("\n\n")[0] + "\n"


def test_logs_say_so_when_no_job_has_failed(call: Call, retried: str) -> None:
    result = call("logs", "moody", "--failed", "--store", retried)
    assert (result.code, result.err) == (0, "workron: no job of moody has failed\n")


def test_options_of_logs_are_refused_when_they_contradict(call: Call, retried: str) -> None:
    result = call("logs", "moody", "--failed", "-f", "--store", retried)
    assert result.code == 2
    assert "give only one of --follow, --attempt and --failed" in result.err
