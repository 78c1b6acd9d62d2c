"""`workron migrate --timeout`, as the chart's controller starts at the same time as the server."""

import pathlib
from urllib import parse

import pytest

from tests.cli.conftest import Call, Start


def _url_in(folder: pathlib.Path, dsn: str) -> str:
    """Return the URL of a database at a socket in this folder, which does not exist yet."""
    return parse.urlsplit(dsn)._replace(query=f"host={folder}").geturl()


def test_migrate_retries_when_the_server_starts_later(
    start: Start, empty_database: str, tmp_path: pathlib.Path
) -> None:
    folders = parse.parse_qs(parse.urlsplit(empty_database).query).get("host")
    if folders is None:
        pytest.skip("the server of WORKRON_TEST_DSN has no socket")
    process = start("migrate", "--timeout", "50s", "--store", _url_in(tmp_path, empty_database))
    assert process.stdout is not None
    assert "does not answer; retrying for 50s" in process.stdout.readline()
    (tmp_path / ".s.PGSQL.5432").symlink_to(pathlib.Path(folders[0], ".s.PGSQL.5432"))
    result, _ = process.communicate()
    assert process.returncode == 0, result
    assert "applied 0001_" in result


def test_migrate_exits_with_3_when_its_timeout_expires(
    call: Call, empty_database: str, tmp_path: pathlib.Path
) -> None:
    result = call("migrate", "--timeout", "10ms", "--store", _url_in(tmp_path, empty_database))
    assert result.code == 3
    assert str(tmp_path) in result.err


def test_migrate_does_not_retry_when_no_timeout_is_given(
    call: Call, empty_database: str, tmp_path: pathlib.Path
) -> None:
    result = call("migrate", "--store", _url_in(tmp_path, empty_database))
    assert result.code != 0
    assert "retrying" not in result.err
