"""The figures in the docs can be taken: a small run of the command that prints them."""

import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_ROOT = pathlib.Path(__file__).parents[2]


def test_figures_are_printed_for_every_store() -> None:
    page = subprocess.run(
        [sys.executable, "docs/figures.py", "--small"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rates = [line.split(" | ") for line in page.splitlines() if "edges | " in line]
    assert [row[0] for row in rates[::2]] == ["| memory", "| SQLite file", "| PostgreSQL"]
    assert all(float(rate.strip(" |").replace(",", "")) > 0 for row in rates for rate in row[2:])
