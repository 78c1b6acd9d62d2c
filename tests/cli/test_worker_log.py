"""The log of a worker: it follows each attempt, and contains no secrets."""

import asyncio
import json
import os
import pathlib
import re
import subprocess
from typing import Any
from urllib import parse

import asyncpg
import pytest
import structlog

from tests.cli.conftest import Call, Start, Write
from tests.store.postgres import roles
from workron.telemetry import logging

_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
_PARENT = f"00-{_TRACE}-00f067aa0ba902b7-01"
_ENV = (
    "env: [{{name: TRACEPARENT, value: {}}}, {{name: SECRET, value: planted-in-the-environment}}]"
)


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def _assert_it_names_an_attempt(line: dict[str, Any]) -> None:
    assert line["name"] == "default/hello/hello"
    assert (line["attempt"], line["level"]) == (1, "info")
    # As text, because JavaScript and some JSON readers round such large numbers.
    assert int(line["job"]) > 0
    assert int(line["fence"]) > 0
    assert {type(line["job"]), type(line["fence"])} == {str}
    assert line["worker"].count(":") == 2
    assert "trace_id" not in line


def test_short_attempt_has_one_log_line(call: Call, write: Write, url: str) -> None:
    job = write("hello", command="exit 3", more="maxAttempts: 1")
    call("submit", job, "--store", url)
    [ended] = [
        line
        for line in _lines(call("worker", "--store", url, "--max-jobs", "1").err)
        if line["event"].startswith("attempt")
    ]
    _assert_it_names_an_attempt(ended)
    assert (ended["outcome"], ended["reason"], ended["exit_code"]) == ("Failed", "ExitCode", 3)
    assert ended["seconds"] >= 0


def test_long_attempt_is_logged_before_its_end(
    call: Call, start: Start, write: Write, url: str, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    call("submit", write("hello", command=f"cat {tmp_path / 'go'}"), "--store", url)
    worker = start("worker", "--store", url, "--max-jobs", "1", "--heartbeat", "100ms")
    assert worker.stdout is not None
    runs = next(line for line in worker.stdout if "attempt" in line)
    (tmp_path / "go").write_text("")
    _assert_it_names_an_attempt(json.loads(runs))
    assert json.loads(runs)["event"] == "attempt running"
    rest = [line for line in worker.communicate()[0].splitlines() if "attempt" in line]
    assert [json.loads(line)["event"] for line in rest] == ["attempt ended"]


def test_trace_of_a_job_is_in_its_environment_and_its_log_lines(
    call: Call, write: Write, url: str
) -> None:
    job = write("hello", command='echo "$TRACEPARENT"', more=_ENV.format(_PARENT))
    call("submit", job, "--store", url)
    result = call("worker", "--store", url, "--max-jobs", "1")
    assert call("output", "hello", "--store", url).out == f"{_PARENT}\n"
    traces = [
        one.get("trace_id") for one in _lines(result.err) if one["event"].startswith("attempt")
    ]
    assert traces == [_TRACE]


@pytest.mark.parametrize("value", ["00-planted-01-01", f"00-{'0' * 32}-00f067aa0ba902b7-01"])
def test_trace_is_not_logged_when_it_is_invalid(
    call: Call, write: Write, url: str, value: str
) -> None:
    call("submit", write("hello", more=_ENV.format(value)), "--store", url)
    result = call("worker", "--store", url, "--max-jobs", "1")
    assert "attempt ended" in result.err
    assert "trace_id" not in result.err


def test_log_is_text_when_the_option_says_so(call: Call, write: Write, url: str) -> None:
    call("submit", write("hello"), "--store", url)
    result = call("worker", "--store", url, "--max-jobs", "1", "--log", "text")
    assert "attempt ended" in result.err
    assert not result.err.startswith("{")


_TASKS = (
    "name: prints, command: echo $SECRET, {env}",
    "name: dies, command: kill -9 $$, {env}, maxAttempts: 1",
    "name: returns, command: echo planted $SECRET > $WORKRON_RESULT, {env}, maxAttempts: 1",
    "name: lacks, argv: [/planted/program], {env}, maxAttempts: 1",
    "name: stays, command: 'echo on > {folder}/on; cat {folder}/go', {env}",
)


_TERMINATE = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = $1"


async def test_log_has_no_value_of_an_environment_and_no_credential(
    start: Start,
    write: Write,
    tmp_path: pathlib.Path,
    fresh_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    os.mkfifo(tmp_path / "on")
    os.mkfifo(tmp_path / "go")
    env = "env: [{name: SECRET, value: planted-value}]"
    flow = write("flow", *(one.format(env=env, folder=tmp_path) for one in _TASKS))
    await asyncio.to_thread(start("submit", flow, "--store", fresh_database).communicate)
    admin = await asyncpg.connect(fresh_database)
    await admin.execute("SELECT workron.ensure_pool('default', 'default', 'planted-token', NULL)")
    async with roles.made_in(fresh_database) as role:
        await admin.execute(f"ALTER ROLE {role.name} PASSWORD 'planted-password'")
        password = parse.urlsplit(role.dsn).password
        assert password
        monkeypatch.setenv("WORKRON_TOKEN", "planted-token")
        url = role.dsn.replace(password, "planted-password")
        worker = start("worker", "--store", url, "--max-jobs", "5", "--heartbeat", "100ms")
        await asyncio.to_thread((tmp_path / "on").read_text)
        await admin.execute(f"ALTER ROLE {role.name} NOLOGIN")
        await admin.execute(_TERMINATE, role.name)
        log = await asyncio.to_thread(_read_on, worker, "heartbeat not answered")
        await admin.execute(f"ALTER ROLE {role.name} LOGIN")
        await asyncio.to_thread((tmp_path / "go").write_text, "")
        log += (await asyncio.to_thread(worker.communicate))[0]
    await admin.close()
    assert worker.returncode == 0
    assert role.name in log
    assert log.count("attempt ended") == 5
    assert "planted" not in log


def _read_on(worker: subprocess.Popen[str], event: str) -> str:
    """Read the log up to this event, and return it."""
    assert worker.stdout is not None
    read = ""
    for line in worker.stdout:
        read += line
        if json.loads(line)["event"] == event:
            return read
    raise AssertionError(f"the worker ended without saying: {event}\n{read}")


@pytest.mark.parametrize("kind", ["job", "workflow"])
def test_trace_of_the_submitter_is_given_to_the_jobs_without_changing_their_content(
    call: Call, write: Write, url: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    tasks = ["name: hello, command: 'echo $TRACEPARENT'"] * (kind == "workflow")
    file = write("flow", *tasks, command='echo "$TRACEPARENT"')
    monkeypatch.setenv("TRACEPARENT", _PARENT)
    call("submit", file, "--store", url)
    monkeypatch.delenv("TRACEPARENT")
    assert "unchanged" in call("submit", file, "--store", url).out
    result = call("worker", "--store", url, "--max-jobs", "1")
    assert _TRACE in result.err
    member = "flow/hello" if tasks else "flow"
    assert call("output", member, "--store", url).out == f"{_PARENT}\n"


@pytest.mark.parametrize("command", ["worker", "run"])
def test_commands_cannot_read_the_memory_of_the_process_with_the_credentials(
    call: Call, write: Write, url: str, command: str
) -> None:
    manifest = write("hello")
    call("submit", manifest, "--store", url)
    words = ["--max-jobs", "1"] if command == "worker" else [str(manifest)]
    result = call(command, "--store", url, *words)
    assert (result.code, result.is_hidden) == (0, True)
    assert not call("get", "--store", url).is_hidden


def test_log_line_is_json_when_its_fields_are_unusual(capfd: pytest.CaptureFixture[str]) -> None:
    printed = {"odd": "ü \udcff", "large": 2**70, "path": pathlib.Path("x"), "flag": None}
    try:
        logging.serve("json")
        structlog.get_logger().warning("plain", path=pathlib.Path("x"))
        structlog.get_logger().warning("said", **printed)
    finally:
        structlog.reset_defaults()
    plain, line = _lines(capfd.readouterr().err)
    assert (line["event"], line["odd"], line["large"]) == ("said", "ü \udcff", 2**70)
    for one in (plain, line):
        assert (one["level"], one["path"]) == ("warning", repr(pathlib.Path("x")))
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", one["time"])
