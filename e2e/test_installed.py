"""The installed wheel is complete: each command works without the files of the repository."""

import json
import pathlib

from e2e.store import Call

_EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


def test_example_runs_in_memory(call: Call) -> None:
    result = call("run", _EXAMPLES / "etl.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "11 jobs" in result.stdout
    assert "11 succeeded" in result.stdout


def test_example_runs_on_sqlite_and_is_listed_afterwards(call: Call) -> None:
    assert call("run", _EXAMPLES / "diamond.yaml", "--store", "sqlite:///jobs.db").returncode == 0
    shown = json.loads(call("get", "-o", "json", "--store", "sqlite:///jobs.db").stdout)
    assert {one["status"]["phase"] for one in shown["items"]} == {"Succeeded"}


def test_example_runs_on_a_migrated_postgresql(call: Call, database: str) -> None:
    assert call("migrate", "--store", database).returncode == 0
    result = call("run", _EXAMPLES / "array.yaml", "--store", database)
    assert result.returncode == 0, result.stdout + result.stderr
