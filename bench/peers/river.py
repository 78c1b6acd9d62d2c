"""River, for Go: over PostgreSQL, and over a SQLite file."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import Final

from bench.draining import Program, Queue
from bench.figure import Side
from bench.peers.peer import Kit, Peer

_SCRIPTS: Final = pathlib.Path(__file__).parent / "scripts"
_TIMEOUT_SECONDS: Final = 300
_BUILD_SECONDS: Final = 900
_PROGRAM: Final = "program"
_ENDED: Final = "SELECT count(*) FROM river_job WHERE state = 'completed'"


def sqlite(jobs: int) -> Side:
    """Measure draining a loaded SQLite file, in jobs a second as the program counts."""

    def measure() -> float:
        with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder:
            output = _run(SQLITE.folder, f"{folder}/river.db", str(jobs))
        return float(json.loads(output)["jobs_per_second"])

    return Side("River, SQLite file", measure)


def _built(module: str) -> Callable[[pathlib.Path, str], None]:
    """Build our program with it; go.mod has the version, and go.sum its hashes."""

    def put(folder: pathlib.Path, _: str) -> None:
        command = [
            "go",
            "build",
            "-mod=readonly",
            "-buildvcs=false",
            "-o",
            str(folder / _PROGRAM),
            ".",
        ]
        subprocess.run(
            command,
            cwd=_SCRIPTS / module,
            env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": ""},
            check=True,
            timeout=_BUILD_SECONDS,
        )

    return put


def _queue(folder: pathlib.Path) -> Queue:
    def load(url: str, jobs: int) -> None:
        _run(folder, "load", url, str(jobs))

    def programs(url: str) -> Sequence[Program]:
        return [Program([str(folder / _PROGRAM), "work", url])]

    return Queue("River", load, programs, _ENDED)


def _run(folder: pathlib.Path, *asked: str) -> str:
    return subprocess.run(
        [str(folder / _PROGRAM), *asked],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=_TIMEOUT_SECONDS,
    ).stdout


PEER: Final = Peer("river", _built("river"), _queue)
SQLITE: Final = Kit("river-sqlite", _built("river_sqlite"))
