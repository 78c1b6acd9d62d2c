"""The bench runs, and tells a ratio of each pair; what they are is no test's business."""

import pathlib
import re
import subprocess
import sys

_ROOT = pathlib.Path(__file__).parents[2]
_ROW = re.compile(r"\| .+ \| -?[\d.,]+ \| .+ \| [\d.,]+ \| -?\d+\.\d\d \| .*\| .*\|")


def test_bench_prints_a_row_for_each_pair() -> None:
    command = [sys.executable, "-m", "bench", "--jobs", "10", "--rounds", "1"]
    said = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout
    heading, line, *rows = said.splitlines()
    assert heading.startswith("| ours |")
    assert line.startswith("|---|")
    assert len(rows) == 12
    assert all(_ROW.fullmatch(row) for row in rows), said
