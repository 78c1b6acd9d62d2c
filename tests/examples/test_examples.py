"""Every example runs as its comments say."""

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.slow

_FOLDER = pathlib.Path(__file__).parents[2] / "examples"

_SUCCEEDED = "Succeeded"
_EXPECTED: dict[str, dict[str, tuple[str, str]]] = {
    "job.yaml": {"hello": (_SUCCEEDED, "Hello from ")},
    "diamond.yaml": {
        name: (_SUCCEEDED, text)
        for name, text in (
            ("top", "top"), ("left", "left"), ("right", "right"), ("bottom", "both sides are done"),
        )
    },
    "array.yaml": {
        "squares": (_SUCCEEDED, ""),
        "squares.check.7": (_SUCCEEDED, "element 7 has a square"),
        "squares.sum": (_SUCCEEDED, "the sum of the squares is 204"),
    },
    "etl.yaml": {
        "etl": (_SUCCEEDED, ""),
        "etl.extract-prices": (_SUCCEEDED, "read 12 prices"),
        "etl.transform.5": (_SUCCEEDED, "coast: 40 rows"),
        "etl.load": (_SUCCEEDED, "loaded 240 rows"),
        "etl.report": (_SUCCEEDED, '{"load": {"rows": 240}}'),
    },
    "failing.yaml": {
        "release": ("Failed", ""),
        "release.deploy": ("Failed", "attempt 2: the server does not answer"),
        "release.announce": ("Skipped", ""),
        "release.undo": (_SUCCEEDED, "rolled back"),
        "release.report": (_SUCCEEDED, "deploy is over"),
    },
}  # fmt: skip


def _run(name: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "workron", "run", str(_FOLDER / name), "-o", "json"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    items = json.loads(done.stdout)["items"]
    return done.returncode, {item["metadata"]["name"]: item["status"] for item in items}


@pytest.mark.parametrize("name", _EXPECTED)
def test_example_does_what_its_comments_say(name: str) -> None:
    code, statuses = _run(name)
    expected_states = [phase for phase, _ in list(_EXPECTED[name].values())[:1]]
    assert code == (expected_states != [_SUCCEEDED])
    for job, (phase, words) in _EXPECTED[name].items():
        assert statuses[job]["phase"] == phase
        assert words in statuses[job].get("outputTail", "")


def test_every_example_is_run() -> None:
    assert {path.name for path in _FOLDER.iterdir() if path.suffix == ".yaml"} == set(_EXPECTED)
