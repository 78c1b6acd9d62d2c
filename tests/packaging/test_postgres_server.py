"""The embedded PostgreSQL server isolates tests from each other and leaves nothing behind."""

import pathlib
import subprocess
import sys

import asyncpg
import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_START_AND_HANG = """
import signal
from tests import postgres_server
with postgres_server.running() as dsn:
    print(dsn.partition("host=")[2], flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("turn", ["first", "second"])
async def test_database_is_empty_when_another_test_wrote_to_its_own(
    empty_database: str, turn: str
) -> None:
    connection = await asyncpg.connect(empty_database)
    try:
        await connection.execute("CREATE TABLE written_once (turn text)")
        await connection.execute("INSERT INTO written_once VALUES ($1)", turn)
    finally:
        await connection.close()


def test_server_and_its_files_are_removed_when_its_owner_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _START_AND_HANG],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        home = pathlib.Path(owner.stdout.readline().strip())
        assert (home / "data" / "PG_VERSION").exists()
        owner.kill()
        # The watchdog inherits the owner's standard error, which closes when both have ended.
        owner.communicate()
    assert not home.exists()
