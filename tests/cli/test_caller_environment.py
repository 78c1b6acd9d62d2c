"""Variables of the caller reach the commands of `workron run`, and no store keeps their values."""

import asyncio
import pathlib
import sqlite3
import uuid

import pytest

from tests.cli.conftest import Call, Write
from workron.cli import manifest_files
from workron.cli.caller_environment import CallerEnvironment, RunVariables
from workron.cli.stores import opened
from workron.core import errors
from workron.core.ids import ClaimId, Fence, JobId
from workron.core.jobspec import Spec
from workron.scheduling import submit
from workron.store.types import ClaimedJob

_SECRET = "s3cr3t-of-the-caller"  # noqa: S105 - of this test
_FROM_ENV = "env: [{name: TOKEN, fromEnv: MY_TOKEN}]"


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", _SECRET)


def _read(tmp_path: pathlib.Path, *texts: str) -> CallerEnvironment:
    files = [tmp_path / f"{number}.env" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return CallerEnvironment.read(files, {"SET": "outside"})


def test_command_gets_the_variable_of_its_caller(call: Call, write: Write, url: str) -> None:
    file = write("job", command='test "$TOKEN" = ' + _SECRET + " && echo yes", more=_FROM_ENV)
    assert call("run", file, "--store", url).code == 0
    assert call("output", "job", "--store", url).out == "yes\n"


def test_value_is_in_no_store_and_no_output(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path
) -> None:
    variables = tmp_path / "secret.env"
    variables.write_text(f"OTHER={_SECRET}-too\n")
    files = (
        write("job", command='test "$TOKEN"', more=_FROM_ENV),
        write("flow", "name: a, argv: ['true']"),
    )
    results = [
        call("run", *files, "--env-file", variables, "--store", url, "-o", "json"),
        call("describe", "job", "--store", url),
        call("get", "--store", url, "-o", "json"),
    ]
    assert [one.code for one in results] == [0, 0, 0]
    assert '"fromEnv": "MY_TOKEN"' in results[0].out
    assert '"fromEnv": "OTHER"' in results[0].out
    assert not [one for one in results if _SECRET in one.out + one.err]
    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        assert _SECRET not in "\n".join(database.iterdump())
    database.close()
    assert not [one for one in tmp_path.glob("jobs.db*") if _SECRET.encode() in one.read_bytes()]


def test_every_command_gets_the_variables_of_the_file(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path
) -> None:
    variables = tmp_path / "a.env"
    variables.write_text("A=from the file\nMY_TOKEN\n")
    tasks = (
        "name: plain, command: 'echo \"$A\" ${#MY_TOKEN}'",
        "name: own, env: [{name: A, value: of the manifest}], command: echo $A",
    )
    flow = write("flow", *tasks)
    assert call("run", flow, "--env-file", variables, "--store", url).code == 0
    assert call("output", "flow/plain", "--store", url).out == f"from the file {len(_SECRET)}\n"
    assert call("output", "flow/own", "--store", url).out == "of the manifest\n"


def test_job_fails_with_words_when_a_worker_without_the_variable_claims_it(
    call: Call, write: Write, url: str
) -> None:
    file = write("job", command="echo ran", more=_FROM_ENV + "\n  startAfter: 2026-01-01T00:00:00Z")
    assert call("run", write("other"), "--store", url).code == 0
    _submit_as_run(file, url)
    assert call("worker", "--store", url, "--max-jobs", "1").code == 0
    result = call("describe", "job", "--store", url)
    assert "the variable MY_TOKEN (env[].fromEnv) has no value in this worker" in result.out
    assert "Failed" in result.out
    assert call("output", "job", "--store", url).out == ""


def _submit_as_run(file: pathlib.Path, url: str) -> None:
    """Leave the job queued, as `workron run` does when it is killed."""

    async def store_plans() -> None:
        async with opened(url) as store:
            await submit.submit(store, manifest_files.request([str(file)], is_local=True))

    asyncio.run(store_plans())


@pytest.mark.parametrize(
    ("namespace", "run", "is_own"),
    [("default", "mine", True), ("default", "other", False), ("team", "mine", False)],
)
def test_process_has_variables_for_its_own_runs_only(
    namespace: str, run: str, *, is_own: bool
) -> None:
    claim, spec = ClaimId(uuid.UUID(int=1)), Spec({"command": "true"})
    job = ClaimedJob(JobId(2), claim, 1, 0, 0, Fence(1), namespace, run, "a", None, spec)
    variables = RunVariables({"A": "b"}, frozenset({("default", "mine")}))
    assert variables(job) == ({"A": "b"} if is_own else {})


def test_variable_of_the_caller_is_refused_when_other_workers_run_the_job(
    call: Call, write: Write, url: str
) -> None:
    file = write("job", more=_FROM_ENV)
    result = call("submit", file, "--store", url)
    assert result.code == 2
    assert result.err == (
        f"workron: {file}:8: fromEnv takes MY_TOKEN from the environment of `workron run` and works"
        " only there; write a value, or set the variable where the worker runs: in env of the"
        " WorkerPool, from a Secret\n"
    )


@pytest.mark.parametrize("command", ["validate", "graph"])
def test_file_is_valid_although_its_variable_is_not_set(
    call: Call, write: Write, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_TOKEN")
    assert call(command, write("job", more=_FROM_ENV)).code == 0


def test_run_is_refused_when_a_variable_is_not_set(
    call: Call, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_TOKEN")
    file = write("job", more=_FROM_ENV)
    result = call("run", file)
    assert result.code == 2
    assert result.err == (
        f"workron: {file}:8: the variable MY_TOKEN (env[].fromEnv) is not set in the environment of"
        " this command; set it, or give a file that has it: --env-file FILE\n"
    )


def test_file_has_lines_as_docker_reads_them(tmp_path: pathlib.Path) -> None:
    text = '# comment\n\n A=1\nB= two = 2 \r\n  # C=3\nD="quoted"\nE=\nSET\n'
    caller = _read(tmp_path, text, "A=9\n")
    assert caller.added == ("A", "B", "D", "E", "SET")
    values = {name: caller.values[name] for name in caller.added}
    assert values == {"A": "9", "B": " two = 2 ", "D": '"quoted"', "E": "", "SET": "outside"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A=1\nexport B=2\n", "0.env:2: `export` is not allowed here; write NAME=VALUE"),
        ("A=1\nUNSET\n", "0.env:2: UNSET has no value here and is not set in the environment"),
        ("a-b=1\n", "0.env:1: 'a-b' is not the name of an environment variable: letters, digits"),
        ("A = 1\n", "0.env:1: 'A ' is not the name of an environment variable"),
        (f"{_SECRET} x\n", "0.env:1: this line is neither NAME=VALUE nor a NAME; write NAME=VALUE"),
        ("WORKRON_X=1\n", "0.env:1: 'WORKRON_X' is reserved: Workron sets variables"),
        (f"A={'x' * 128_001}", "0.env:1: the value of A is 128,001 bytes long; at most 128,000"),
    ],
)
def test_file_is_refused_by_line_without_its_values(
    tmp_path: pathlib.Path, text: str, message: str
) -> None:
    with pytest.raises(errors.InputError) as refused:
        _read(tmp_path, text)
    assert message in str(refused.value)
    assert _SECRET not in str(refused.value)


def test_message_names_the_file_when_it_cannot_be_read(
    call: Call, write: Write, tmp_path: pathlib.Path
) -> None:
    job, binary = write("job"), tmp_path / "binary"
    binary.write_bytes(b"A=\xff\n")
    missing = call("run", job, "--env-file", tmp_path / "nowhere")
    assert (missing.code, missing.err) == (
        2, f"workron: --env-file: {tmp_path}/nowhere: No such file or directory\n",
    )  # fmt: skip
    assert "binary is not UTF-8; save it as UTF-8" in call("run", job, "--env-file", binary).err


def test_values_are_not_in_the_representation(tmp_path: pathlib.Path) -> None:
    assert "outside" not in repr(_read(tmp_path))
