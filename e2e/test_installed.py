"""What is installed is whole: every command finds what it needs, and nothing of the repository."""

import json
import pathlib

from e2e.store import Call

_EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


def test_example_runs_in_memory(call: Call) -> None:
    said = call("run", _EXAMPLES / "etl.yaml")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "11 jobs" in said.stdout
    assert "11 succeeded" in said.stdout


def test_example_runs_on_a_file_and_is_shown_afterwards(call: Call) -> None:
    assert call("run", _EXAMPLES / "diamond.yaml", "--store", "sqlite:///jobs.db").returncode == 0
    shown = json.loads(call("get", "-o", "json", "--store", "sqlite:///jobs.db").stdout)
    assert {one["status"]["phase"] for one in shown["items"]} == {"Succeeded"}


def test_example_runs_on_postgresql_that_was_migrated(call: Call, database: str) -> None:
    assert call("migrate", "--store", database).returncode == 0
    said = call("run", _EXAMPLES / "array.yaml", "--store", database)
    assert said.returncode == 0, said.stdout + said.stderr
