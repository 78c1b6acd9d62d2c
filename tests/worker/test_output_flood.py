"""A command that writes a gigabyte at full speed, beside an agent that is a process of its own."""

import json
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_ROOT = pathlib.Path(__file__).parents[2]
_MAX_GROWTH = 64 * 1024 * 1024


@pytest.mark.parametrize("stream", [0, 32 * 1024 * 1024])
def test_agent_needs_little_memory_and_sends_heartbeats_when_a_command_writes_a_gigabyte(
    tmp_path: pathlib.Path, stream: int
) -> None:
    store = f"sqlite:///{tmp_path}/jobs.db"
    program = subprocess.run(
        [sys.executable, _ROOT / "tests/worker/output_flood.py", store, str(stream)],
        env={"PYTHONPATH": f"{_ROOT}:{_ROOT}/worker_image", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    measured = json.loads(program.stdout.splitlines()[-1])
    assert measured["stored"] >= stream + 65536
    assert measured["grown"] < _MAX_GROWTH
    # The interval of heartbeats is 100 ms; a blocked event loop uses more CPU time between two.
    assert measured["gap"] < 1
