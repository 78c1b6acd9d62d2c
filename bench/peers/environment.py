"""Peers in Python: each has its own virtual environment and a script that drives it.

The arguments of a script are an action (`load`, `work`), the URL of a database, and the number of
jobs.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from bench.draining import Program, Queue

_SCRIPTS: Final = pathlib.Path(__file__).with_name("scripts")
_ENVIRONMENT: Final = "venv"
_INSTALLING_SECONDS: Final = 600
_LOADING_SECONDS: Final = 120


def put(*requirements: str) -> Callable[[pathlib.Path, str], None]:
    """Install packages; the first is the peer, in the given version."""

    def install(folder: pathlib.Path, version: str) -> None:
        peer, *others = requirements
        pip = [_python(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for command in (
            [sys.executable, "-m", "venv", str(folder / _ENVIRONMENT)],
            [*pip, f"{peer}=={version}", *others],
        ):
            subprocess.run(command, check=True, timeout=_INSTALLING_SECONDS)

    return install


def queue(title: str, script: str, ended: str) -> Callable[[pathlib.Path], Queue]:
    """Drain the jobs with one process, as a Python service would."""

    def of(folder: pathlib.Path) -> Queue:
        command = [_python(folder), str(_SCRIPTS / script)]

        def load(url: str, jobs: int) -> None:
            _run([*command, "load", url, str(jobs)])

        return Queue(title, load, lambda url: [Program([*command, "work", url])], ended)

    return of


def _python(folder: pathlib.Path) -> str:
    return str(folder / _ENVIRONMENT / "bin" / "python")


def _run(command: list[str]) -> None:
    """Run a script to its end, and report its output if it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_LOADING_SECONDS
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {(done.stdout + done.stderr)[-2000:]}")
