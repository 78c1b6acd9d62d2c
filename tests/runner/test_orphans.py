"""What a killed worker leaves: found by its mark, whatever it did, and nothing else with it."""

import os
import pathlib
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator

import pytest

from workron_runner import leftovers, workspace


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Callable[..., int]]:
    children: list[subprocess.Popen[str]] = []

    def start(*argv: str, boot: uuid.UUID | None = None, cwd: pathlib.Path = tmp_path) -> int:
        mark = {} if boot is None else {workspace.BOOT_VARIABLE: str(boot)}
        child = subprocess.Popen(
            ["/bin/sh", "-c", f"echo on; exec {' '.join(argv)}"],
            env={"PATH": os.environ["PATH"]} | mark,
            cwd=cwd, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "on\n"
        return child.pid

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture(autouse=True)
def _temporary(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_processes_of_a_boot_are_ended_and_others_are_not(
    start: Callable[..., int], lives: Callable[[int], bool]
) -> None:
    boot, other = uuid.uuid4(), uuid.uuid4()
    mine, also_mine = start("sleep 1000", boot=boot), start("sleep 1000", boot=boot)
    not_mine, nobodys = start("sleep 1000", boot=other), start("sleep 1000")
    assert leftovers.clean_up_boot(boot) == leftovers.CleanupResult(2, is_complete=True)
    assert [lives(pid) for pid in (mine, also_mine, not_mine, nobodys)] == [
        False, False, True, True,
    ]  # fmt: skip


def test_process_that_dropped_its_environment_is_found_by_its_folder(
    start: Callable[..., int], lives: Callable[[int], bool]
) -> None:
    boot = uuid.uuid4()
    home = workspace.boot_folder(boot) / "1"
    home.mkdir(parents=True)
    pid = start("env", "-i", "sleep", "1000", boot=boot, cwd=home)
    assert leftovers.clean_up_boot(boot).killed == 1
    assert not lives(pid)


def test_process_that_is_stopped_is_ended_too(
    start: Callable[..., int], lives: Callable[[int], bool]
) -> None:
    boot = uuid.uuid4()
    pid = start("sleep 1000", boot=boot)
    os.kill(pid, signal.SIGSTOP)
    assert leftovers.clean_up_boot(boot).is_complete
    assert not lives(pid)


def test_folder_of_a_boot_is_removed() -> None:
    boot = uuid.uuid4()
    (workspace.boot_folder(boot) / "1" / "deep").mkdir(parents=True)
    assert leftovers.clean_up_boot(boot) == leftovers.CleanupResult(0, is_complete=True)
    assert not workspace.boot_folder(boot).exists()


def test_nothing_is_claimed_to_be_clear_where_processes_cannot_be_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(leftovers, "_PROC", tmp_path)
    assert leftovers.clean_up_boot(uuid.uuid4()) == leftovers.CleanupResult(0, is_complete=False)
