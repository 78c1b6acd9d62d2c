"""`workron migrate --timeout`: for who starts beside the server, as the chart's controller does."""

import pathlib
import subprocess
from collections.abc import Callable
from urllib import parse

import pytest

from tests.cli.conftest import Call

Start = Callable[..., subprocess.Popen[str]]


def _by(folder: pathlib.Path, dsn: str) -> str:
    """Give the URL of that database by a socket in this folder, where there is none yet."""
    return parse.urlsplit(dsn)._replace(query=f"host={folder}").geturl()


def test_migrate_retries_when_the_server_starts_later(
    start: Start, empty_database: str, tmp_path: pathlib.Path
) -> None:
    homes = parse.parse_qs(parse.urlsplit(empty_database).query).get("host")
    if homes is None:
        pytest.skip("the server of WORKRON_TEST_DSN has no socket that could come later")
    process = start("migrate", "--timeout", "50s", "--store", _by(tmp_path, empty_database))
    assert process.stdout is not None
    assert "does not answer; retrying for 50s" in process.stdout.readline()
    (tmp_path / ".s.PGSQL.5432").symlink_to(pathlib.Path(homes[0], ".s.PGSQL.5432"))
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert "applied 0001_" in said


def test_migrate_exits_with_5_when_its_timeout_expires(
    call: Call, empty_database: str, tmp_path: pathlib.Path
) -> None:
    said = call("migrate", "--timeout", "10ms", "--store", _by(tmp_path, empty_database))
    assert said.code == 5
    assert str(tmp_path) in said.err


def test_migrate_does_not_retry_when_no_timeout_is_given(
    call: Call, empty_database: str, tmp_path: pathlib.Path
) -> None:
    said = call("migrate", "--store", _by(tmp_path, empty_database))
    assert said.code != 0
    assert "asked again" not in said.err
