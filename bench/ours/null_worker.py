"""`python -m bench.ours.null_worker worker ...`: the program `workron`, whose workers run nothing.

All is as in the program itself, but that its runner is `bench/null_runner.py`. It imports nothing
else of the bench, so that what is measured has nothing else in it.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Final
from unittest import mock

from workron import cli

_RUNNER: Final = pathlib.Path(__file__).parents[1] / "null_runner.py"


def main() -> None:
    """Run the program."""
    command = (sys.executable, "-PSs", str(_RUNNER))
    with mock.patch("workron_worker.runner_process._COMMAND", command):
        cli.main()


if __name__ == "__main__":
    main()
