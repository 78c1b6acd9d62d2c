"""A command that writes a gigabyte at full speed, beside an agent that is a process of its own."""

import json
import pathlib
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_MOST_GROWTH = 64 * 1024 * 1024


@pytest.mark.parametrize("stream", [0, 32 * 1024 * 1024])
def test_agent_neither_grows_nor_beats_late_under_a_flood(
    tmp_path: pathlib.Path, stream: int
) -> None:
    store = f"sqlite:///{tmp_path}/jobs.db"
    said = subprocess.run(
        [sys.executable, _ROOT / "tests/worker/flood.py", store, str(stream)],
        env={"PYTHONPATH": f"{_ROOT}:{_ROOT}/worker_image", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    measured = json.loads(said.stdout.splitlines()[-1])
    assert measured["stored"] >= stream + 65536
    assert measured["grown"] < _MOST_GROWTH
    # It beats every 100 ms here; a lease is lost when the beats of seconds are missing.
    assert measured["gap"] < 1
