"""`workron maintain`: several processes may run, and one of them is elected."""

import pathlib
import random
import signal
import uuid

import pytest

from tests.cli.conftest import Call, Start, Write, read_log_until
from workron.cli import system_clock
from workron.store import connect


def test_workflow_ends_when_a_worker_and_a_maintainer_run(
    call: Call, start: Start, write: Write, url: str
) -> None:
    flow = write(
        "flow", "name: b, command: echo, dependsOn: [{name: a}]", "name: a, count: 3, command: echo"
    )
    call("submit", flow, "--store", url)
    maintainer, worker = start("maintain", "--store", url), start("worker", "--store", url)
    assert call("wait", "flow", "--store", url).code == 0
    for process in (worker, maintainer):
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert (worker.returncode, maintainer.returncode) == (0, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_maintainer_resigns_when_a_signal_arrives(
    start: Start, url: str, number: signal.Signals
) -> None:
    store = await connect.connect(url, clock=system_clock.CLOCK, rng=random.Random())
    maintainer = start("maintain", "--store", url)
    read_log_until(maintainer, "maintainer elected")
    assert not await store.elect(uuid.uuid4(), 10.0)
    maintainer.send_signal(number)
    maintainer.communicate()
    assert maintainer.returncode == 0
    assert await store.elect(uuid.uuid4(), 10.0)
    await store.close()


def test_maintain_is_refused_when_the_store_does_not_exist(
    call: Call, tmp_path: pathlib.Path
) -> None:
    assert "does not exist" in call("maintain", "--store", f"sqlite:///{tmp_path}/none.db").err
    assert "no store given" in call("maintain").err
