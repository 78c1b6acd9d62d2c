"""The program with PostgreSQL, and with stores that cannot be opened."""

import os
import pathlib
import sqlite3

import pytest

from tests.cli.conftest import Call, Start, Write
from workron.core import errors


def test_run_creates_the_schema_when_the_database_is_empty(
    call: Call, write: Write, empty_database: str
) -> None:
    flow = write("flow", "name: a, count: 3, command: echo", "name: b, command: exit 1")
    result = call("run", flow, "--store", empty_database)
    assert result.code == 1
    assert "4 jobs in" in result.out
    assert call("output", "flow/a/2", "--store", empty_database).out == "\n"


def test_streamed_output_is_stored_in_postgresql(
    call: Call, write: Write, empty_database: str
) -> None:
    streams = write(
        "many", command="seq 300000", more="outputStreamBytes: 5000000\n  outputLimitBytes: 0"
    )
    assert call("run", streams, "--store", empty_database).code == 0
    wanted = "".join(f"{number}\n" for number in range(1, 300_001))
    assert call("output", "many", "--store", empty_database).out == wanted


def test_hint_names_migrate_when_the_database_is_empty(
    call: Call, write: Write, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = call("submit", write("hello"), "--store", empty_database)
    assert result.code == 3
    assert "workron migrate --store" in result.err
    monkeypatch.setenv("WORKRON_STORE", empty_database)
    assert "create it with `workron migrate`\n" in call("submit", write("hello")).err
    assert call("migrate").code == 0
    assert call("submit", write("hello"), "--store", empty_database).code == 0


def test_run_resumes_in_postgresql_when_its_process_was_killed(
    call: Call,
    start: Start,
    write: Write,
    tmp_path: pathlib.Path,
    fresh_database: str,
) -> None:
    os.mkfifo(tmp_path / "on")
    once = f"mkdir {tmp_path}/once || exit 0; echo on > {tmp_path}/on; exec sleep 1000"
    flow = write("flow", f"name: a, command: '{once}'", "name: b, command: echo")
    run = start("run", flow, "--store", fresh_database, "--slots", "1")
    (tmp_path / "on").read_text()
    run.kill()
    run.communicate()
    result = call("run", flow, "--store", fresh_database)
    assert (result.code, result.out.count("resuming flow")) == (0, 1)


@pytest.mark.parametrize(
    "url", ["postgresql://unknown@127.0.0.1:1/none", "sqlite:////proc/none/jobs.db"]
)
def test_error_names_the_store_when_it_cannot_be_opened(call: Call, write: Write, url: str) -> None:
    result = call("run", write("hello"), "--store", url)
    assert result.code == 3
    assert "Traceback" not in result.err
    assert url.partition("/" * 3)[2] in result.err or "127.0.0.1" in result.err


def test_file_is_refused_when_it_belongs_to_another_program(
    call: Call, write: Write, tmp_path: pathlib.Path, url: str
) -> None:
    connection = sqlite3.connect(tmp_path / "jobs.db")
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()
    result = call("run", write("hello"), "--store", url)
    assert result.code == 3
    assert "another application" in result.err


def test_password_is_not_printed_when_the_store_cannot_be_opened(call: Call, write: Write) -> None:
    url = "postgresql://unknown:s3cret@127.0.0.1:1/none"
    result = call("run", write("hello"), "--store", url)
    assert result.code == 3
    assert "s3cret" not in result.out + result.err


def test_run_removes_its_folders_when_its_store_fails(
    call: Call,
    write: Write,
    url: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object, **__: object) -> str:
        raise errors.StoreFullError("jobs.db: the disk is full")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("workron.store.sqlite.store.SqliteStore.ensure_pool", fail)
    result = call("run", write("hello"), "--store", url)
    assert (result.code, result.err) == (3, "workron: jobs.db: the disk is full\n")
    assert list(tmp_path.glob("workron-*")) == []
