"""A store as its owner calls it and as containers do, and what becomes of a job in it."""

import json
import pathlib
import secrets
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib import parse

import asyncpg

from e2e.containers import SOCKETS

Call = Callable[..., "subprocess.CompletedProcess[str]"]
Submit = Callable[[str, str], None]


@dataclass(frozen=True)
class Store:
    """A migrated database, as its owner calls it and as a worker in a container does."""

    url: str
    url_inside: str
    owners_url_inside: str
    token: str
    socket: pathlib.Path


async def made(database: str, call: Call) -> Store:
    """Make one that no other test has seen, with a worker's role and a token of its pool."""
    name, role, token = (f"image_{secrets.token_hex(6)}" for _ in range(3))
    await execute(database, f"CREATE DATABASE {name}", f"CREATE ROLE {role} LOGIN")
    url = parse.urlsplit(database)._replace(path=f"/{name}").geturl()
    assert call("migrate", "--store", url).returncode == 0
    await execute(
        url,
        f"SELECT workron.grant_worker('{role}')",
        f"SELECT workron.ensure_pool('default', 'default', '{token}', NULL)",
    )
    [home] = parse.parse_qs(parse.urlsplit(url).query)["host"]
    inside = f"@/{name}?host={SOCKETS}"
    return Store(
        url=url,
        url_inside=f"postgresql://{role}{inside}",
        owners_url_inside=f"postgresql://postgres{inside}",
        token=token,
        socket=pathlib.Path(home, ".s.PGSQL.5432"),
    )


async def execute(url: str, *statements: str) -> None:
    """Do this as the owner of the database."""
    connection = await asyncpg.connect(url)
    try:
        for one in statements:
            await connection.execute(one)
    finally:
        await connection.close()


def manifest(name: str, command: str) -> str:
    """Write a job down."""
    job = {
        "apiVersion": "workron.dev/v1alpha1", "kind": "Job",
        "metadata": {"name": name}, "spec": {"command": command},
    }  # fmt: skip
    return json.dumps(job)


def status(call: Call, store: Store, name: str) -> dict[str, Any]:
    """Give the status of a job."""
    said = call("get", name, "--store", store.url, "-o", "json")
    [row] = json.loads(said.stdout)["items"]
    found: dict[str, Any] = row["status"]
    return found


def await_end(call: Call, store: Store, name: str) -> dict[str, Any]:
    """Wait for the end of a job, and give its status."""
    call("wait", name, "--store", store.url, "--timeout", "60s")
    return status(call, store, name)
