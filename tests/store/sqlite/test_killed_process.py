"""Answered reports survive `kill -9`, and nothing is half-done."""

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.store.behaviour.worker import MANY
from tests.store.sqlite import opening
from workron.core.states import State

_ROOT = Path(__file__).parents[3]
_JOBS_IN_TABLES = """
    SELECT job FROM waiting UNION ALL SELECT job FROM ready UNION ALL SELECT job FROM deferred
    UNION ALL SELECT job FROM running UNION ALL SELECT job FROM done ORDER BY job
"""


def _run_until_killed(path: Path, lines: int) -> list[int]:
    """Let a process complete jobs, kill it meanwhile, and return the answered reports."""
    command = [sys.executable, "-m", "tests.store.sqlite.busy", str(path)]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        answered = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        answered += process.stdout.readlines()
    whole = [line for line in answered if line.endswith("\n")]
    assert len(whole) >= lines, "it ended before it was killed"
    return [int(job) for line in whole for job in line.split()]


def _read(path: Path, statement: str) -> list[int]:
    with contextlib.closing(sqlite3.connect(path)) as opened:
        return [row[0] for row in opened.execute(statement)]


async def test_answered_reports_survive_when_the_process_is_killed(path: Path) -> None:
    answered: set[int] = set()
    for lines in (1, 7, 20):
        answered |= set(_run_until_killed(path, lines))
        assert answered <= set(_read(path, "SELECT job FROM done WHERE state = 'Succeeded'"))
    with contextlib.closing(sqlite3.connect(path)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_every_job_is_in_one_table_when_the_process_is_killed(path: Path) -> None:
    for lines in (3, 11):
        _run_until_killed(path, lines)
        assert _read(path, _JOBS_IN_TABLES) == _read(path, "SELECT id FROM job ORDER BY id")


async def test_work_continues_when_the_process_was_killed(path: Path) -> None:
    answered = _run_until_killed(path, 10)
    store = await opening.open_store(path)
    for sighting in await store.list_heartbeats():
        await store.reap(sighting.worker, version=None)
    (run,) = await store.list_runs()
    progress = await store.count_states(run.run)
    assert progress[State.SUCCEEDED] >= len(answered)
    assert (await store.audit(MANY)).missed == 0
    assert set(progress) <= {State.QUEUED, State.WAITING, State.SUCCEEDED}
    await store.close()
