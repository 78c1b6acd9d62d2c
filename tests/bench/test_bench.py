"""The bench runs and prints every figure; the tests do not check the values."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_ROW = re.compile(r"\| .+ \| [\d.,]+ \| .+ \| [\d.,]+ \| \d+\.\d\d \| .* \| .* \|.* \|")


def _bench(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *options]
    with subprocess.Popen(
        command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as bench:  # fmt: skip
        try:
            stdout, stderr = bench.communicate()
        finally:
            # After a timeout the programs that the bench has started would run on.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(bench.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, bench.returncode, stdout, stderr)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_bench_measures_every_figure() -> None:
    result = _bench("--smoke", "--parts", "all")
    assert result.returncode == 0, result.stderr
    heading, line, *rest = result.stdout.splitlines()
    rows = rest[: rest.index("")]
    assert heading.startswith("| Workron |")
    assert line.startswith("|---|")
    assert all(_ROW.fullmatch(row) for row in rows), result.stdout
    results = _ROOT / ".bench" / "results"
    written = json.loads((results / "results.json").read_text())
    assert len(written["rows"]) == len(rows) > 10
    assert all(limit["first"] > 0 and limit["last"] > 0 for limit in written["limits"])
    assert (results / "ratios.svg").read_text().count("<circle") == len(rows)


def test_error_lists_the_figures_when_a_name_is_unknown() -> None:
    result = _bench("--smoke", "--only", "pickup-p50", "pickpu")
    assert result.returncode == 1
    assert result.stderr.startswith("pickpu: no such figure; the figures are shell-8, ")


def test_publish_is_rejected_when_only_some_figures_are_measured() -> None:
    result = _bench("--smoke", "--only", "pickup-p50", "--publish")
    assert result.returncode == 2
    assert "omit --only" in result.stderr
