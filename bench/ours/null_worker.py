"""`python -m bench.ours.null_worker worker ...`: `workron` with workers that run no commands.

It differs from the program only in its runner, `bench/null_runner.py`. It imports nothing else of
the bench, so that the measurement contains nothing else.
"""

from __future__ import annotations

import functools
import pathlib
import sys
from typing import Final
from unittest import mock

from workron import cli
from workron_worker.runner_connection import ChildRunners

RUNNER: Final = (
    sys.executable, "-PSs", str(pathlib.Path(__file__).parents[1] / "null_runner.py"),
)  # fmt: skip


def main() -> None:
    """Run the program."""
    runners = functools.partial(ChildRunners, command=RUNNER)
    with mock.patch("workron.cli.worker.ChildRunners", runners):
        cli.main()


if __name__ == "__main__":
    main()
