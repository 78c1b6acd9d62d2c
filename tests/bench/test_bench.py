"""The bench runs, and tells of each figure; how large they are is no test's business."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_ROW = re.compile(r"\| .+ \| [\d.,]+ \| .+ \| [\d.,]+ \| \d+\.\d\d \| .* \| .* \|.* \|")


def _bench(*asked: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *asked]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_bench_measures_every_figure() -> None:
    said = _bench("--smoke", "--parts", "all")
    assert said.returncode == 0, said.stderr
    heading, line, *rest = said.stdout.splitlines()
    rows = rest[: rest.index("")]
    assert heading.startswith("| ours |")
    assert line.startswith("|---|")
    assert all(_ROW.fullmatch(row) for row in rows), said.stdout
    results = _ROOT / ".bench" / "results"
    told = json.loads((results / "results.json").read_text())
    assert len(told["rows"]) == len(rows) > 10
    assert all(limit["first"] > 0 and limit["last"] > 0 for limit in told["limits"])
    assert (results / "ratios.svg").read_text().count("<circle") == len(rows)


def test_figure_that_there_is_not_is_named_with_those_that_there_are() -> None:
    said = _bench("--smoke", "--only", "pickup-p50", "pickpu")
    assert said.returncode == 1
    assert said.stderr.startswith("pickpu: no such figure; the figures are shell-8, ")


def test_few_figures_alone_are_not_published() -> None:
    said = _bench("--smoke", "--only", "pickup-p50", "--publish")
    assert said.returncode == 2
    assert "leave --only out" in said.stderr
