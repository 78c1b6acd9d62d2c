"""A full disk: the error says so, no submission is stored in part, and calls work afterwards.

The database is in a tablespace of its own on a small file system in memory, which only
root can mount; elsewhere the test is skipped.
"""

import contextlib
import os
import pathlib
import pwd
import random
import secrets
import subprocess
from collections.abc import Iterator
from urllib import parse

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.databases import run_statement
from tests.store.behaviour.worker import mint, mint_boot, report_on
from workron.core import errors
from workron.store.postgres.store import PostgresStore, open_postgres
from workron.store.types import Registration, ReportResult

_MEGABYTE = 1 << 20
_SIZE = 64 * _MEGABYTE
_LEFT = _MEGABYTE


@pytest.fixture
def small_disk(postgres_dsn: str) -> Iterator[pathlib.Path]:
    home = pathlib.Path(dict(parse.parse_qsl(parse.urlsplit(postgres_dsn).query)).get("host", ""))
    if os.geteuid() != 0 or not (home / "data").is_dir():
        pytest.skip("only root can mount a small disk, and only under the tests' own server")
    path = home / f"disk-{secrets.token_hex(4)}"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "none", str(path)]
    unmount = ["umount", "--lazy", str(path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let root mount a file system")
    owner = pwd.getpwnam("nobody")
    os.chown(path, owner.pw_uid, owner.pw_gid)
    try:
        yield path
    finally:
        subprocess.run(unmount, check=True)
        path.rmdir()


@pytest.fixture
def small_database(
    postgres_dsn: str, migrated_template: str, small_disk: pathlib.Path
) -> Iterator[str]:
    name = f"workron_small_{secrets.token_hex(6)}"
    run_statement(postgres_dsn, f"CREATE TABLESPACE {name} LOCATION '{small_disk}'")
    try:
        where = f"TEMPLATE {migrated_template} TABLESPACE {name}"
        run_statement(postgres_dsn, f"CREATE DATABASE {name} {where}")
        try:
            yield parse.urlsplit(postgres_dsn)._replace(path=f"/{name}").geturl()
        finally:
            run_statement(postgres_dsn, f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        run_statement(postgres_dsn, f"DROP TABLESPACE {name}")


def _fill(disk: pathlib.Path) -> pathlib.Path:
    """Fill the disk but for `_LEFT`, while the server may write to it as well."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(bytes(_LEFT)):
                pass
        file.truncate(file.tell() - _LEFT)
    return filler


async def _end_one(store: PostgresStore) -> ReportResult:
    token = await store.ensure_pool(plans.NAMESPACE, "default")
    session = await store.register(Registration(token, "worker", mint_boot(), slots=1))
    (claimed,) = await store.claim(session.key, mint())
    completed = await store.complete(session.key, [report_on(claimed, output=b"text")])
    return completed.answers[0]


async def test_submission_is_refused_whole_when_the_disk_is_full(
    small_database: str, small_disk: pathlib.Path
) -> None:
    store = await open_postgres(small_database, rng=random.Random())
    try:
        (job,) = await store.submit([plans.job()])
        filler = _fill(small_disk)
        large = plans.array(30_000)
        with pytest.raises(errors.StoreFullError, match="No space left on device"):
            await store.submit([large])
        assert [run.run for run in await store.list_runs()] == [job.run]
        filler.unlink()
        assert await _end_one(store) is ReportResult.ACCEPTED
        (submitted,) = await store.submit([large])
        assert submitted.is_new
        assert len(await store.list_jobs(submitted.run)) == 30_002
    finally:
        await store.close()
