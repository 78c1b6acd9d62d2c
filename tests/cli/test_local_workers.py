"""The workers of one process."""

import contextlib
import pathlib
import tempfile
import uuid

import pytest

from tests.cli.conftest import Call, Write
from workron.cli import system_clock
from workron.cli.local_workers import LocalWorkers, ensure_pools
from workron.store import connect
from workron.store.types import Registration
from workron_worker.runner_client import RunnerExecutor


@pytest.mark.parametrize(
    ("url", "lease"), [("memory:", 365 * 24 * 3600.0), ("sqlite:///{}/store.db", 60.0)]
)
async def test_lease_depends_on_the_kind_of_store(
    tmp_path: pathlib.Path, url: str, lease: float
) -> None:
    store = await connect.connect(
        url.format(tmp_path), clock=system_clock.CLOCK, rng=system_clock.RNG
    )
    executor = RunnerExecutor(grace=system_clock.KILL_GRACE, boot=uuid.uuid4())
    with contextlib.closing(LocalWorkers(store, executor, slots=1)) as workers:
        workers.add_agents(await ensure_pools(store, [("default", "default")]))
        token = await store.ensure_pool("default", "default")
        session = await store.register(Registration(token, "one", uuid.uuid4(), slots=1))
    await store.close()
    assert session.lease_seconds == lease


@pytest.mark.parametrize("command", ["worker", "run"])
def test_error_names_the_remedy_when_no_temporary_directory_is_writable(
    call: Call, write: Write, url: str, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    job = write("hello")
    call("submit", job, "--store", url)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc", "/sys"])
    result = call(command, *([job] * (command == "run")), "--store", url)
    assert result.code == 2
    assert result.err == (
        "workron: no writable temporary directory found (searched ['/proc', '/sys']);"
        " set TMPDIR, or start the container with `--tmpfs /tmp:exec`\n"
    )
