"""`workron workers` and `workron top`: who runs jobs, and how busy each pool is."""

import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Call, Start, Write


@pytest.fixture
def busy(call: Call, start: Start, write: Write, url: str, tmp_path: pathlib.Path) -> Iterator[str]:
    """The URL of a store in which one worker runs one of two jobs."""
    os.mkfifo(tmp_path / "on")
    os.mkfifo(tmp_path / "go")
    command = f"echo > {tmp_path}/on; cat {tmp_path}/go"
    call("submit", write("slow", command=command), "--store", url)
    worker = start("worker", "--store", url, "--slots", 1)
    (tmp_path / "on").read_text()
    call("submit", write("next"), write("other", more="pool: large"), "--store", url)
    yield url
    worker.send_signal(signal.SIGTERM)
    (tmp_path / "go").write_text("")
    worker.communicate()


def test_workers_are_listed_with_their_jobs(call: Call, busy: str) -> None:
    heading, line = call("workers", "--store", busy).out.splitlines()
    assert heading.split() == ["POOL", "NAME", "SLOTS", "RUNNING", "STATE"]
    cells = line.split()
    assert (cells[0], cells[2:]) == ("default/default", ["1", "1", "ready"])
    [item] = json.loads(call("workers", "-o", "json", "--store", busy).out)["items"]
    assert (item["pool"], item["running"], item["isDraining"]) == ("default", 1, False)


def test_pools_are_summed_up(call: Call, busy: str) -> None:
    heading, *lines = call("top", "--store", busy).out.splitlines()
    assert heading.split() == [
        "POOL", "WORKERS", "SLOTS", "RUNNING", "FREE", "QUEUED", "OLDEST",
    ]  # fmt: skip
    assert [line.split()[:6] for line in lines] == [
        ["default/default", "1", "1", "1", "0", "1"], ["default/large", "0", "0", "0", "0", "1"],
    ]  # fmt: skip
    items = json.loads(call("top", "-o", "json", "--store", busy).out)["items"]
    assert [(item["pool"], item["queued"]) for item in items] == [("default", 1), ("large", 1)]
    assert call("top", "-n", "elsewhere", "--store", busy).err.startswith("no workers and no")


def test_pool_is_printed_again_when_it_changes(call: Call, write: Write, url: str) -> None:
    call("submit", write("one"), "--store", url)
    arguments = ("top", "-w", "--store", url)
    with subprocess.Popen(
        [sys.executable, "-m", "workron", *arguments], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert [child.stdout.readline().split()[0] for _ in range(2)] == ["POOL", "default/default"]
        call("submit", write("two"), "--store", url)
        assert child.stdout.readline().split()[5] == "2"
        child.send_signal(signal.SIGINT)
        assert child.wait() == 130


def test_a_hint_is_printed_when_no_worker_runs(call: Call, url: str) -> None:
    call("migrate", "--store", url)
    result = call("workers", "--store", url)
    assert (result.code, result.out) == (0, "")
    assert result.err == "no workers; `workron worker` starts one\n"
    assert call("top", "-w", "-o", "json", "--store", url).code == 2
