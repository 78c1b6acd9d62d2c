"""A PostgreSQL store for containers: how its owner and a worker connect, and its jobs."""

import json
import pathlib
import secrets
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib import parse

import asyncpg

from e2e.containers import SOCKET_FOLDER

Call = Callable[..., "subprocess.CompletedProcess[str]"]
Submit = Callable[[str, str], None]


@dataclass(frozen=True)
class Store:
    """A migrated database, with its URL on the host and its URLs in a container."""

    url: str
    url_inside: str
    owner_url_inside: str
    token: str
    socket: pathlib.Path


async def create_store(database: str, call: Call) -> Store:
    """Make a new database, with a role for workers and the token of a pool."""
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
    inside = f"@/{name}?host={SOCKET_FOLDER}"
    return Store(
        url=url,
        url_inside=f"postgresql://{role}{inside}",
        owner_url_inside=f"postgresql://postgres{inside}",
        token=token,
        socket=pathlib.Path(home, ".s.PGSQL.5432"),
    )


async def execute(url: str, *statements: str) -> None:
    """Run statements as the owner of the database."""
    connection = await asyncpg.connect(url)
    try:
        for one in statements:
            await connection.execute(one)
    finally:
        await connection.close()


def manifest(name: str, command: str) -> str:
    """Return the manifest of a Job as JSON."""
    job = {
        "apiVersion": "workron.dev/v1alpha1", "kind": "Job",
        "metadata": {"name": name}, "spec": {"command": command},
    }  # fmt: skip
    return json.dumps(job)


def job_status(call: Call, store: Store, name: str) -> dict[str, Any]:
    """Return the status of a job."""
    result = call("get", name, "--store", store.url, "-o", "json")
    [row] = json.loads(result.stdout)["items"]
    found: dict[str, Any] = row["status"]
    return found


def wait_for_end(call: Call, store: Store, name: str) -> dict[str, Any]:
    """Wait for the end of a job, and return its status."""
    call("wait", name, "--store", store.url, "--timeout", "60s")
    return job_status(call, store, name)
