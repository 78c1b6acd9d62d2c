"""Processes and folders of a killed worker are found by their boot id, and nothing else is."""

import os
import pathlib
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator

import pytest

from workron_runner import boot_cleanup, workspace
from workron_runner.boot_cleanup import CleanupResult


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Callable[..., int]]:
    children: list[subprocess.Popen[str]] = []

    def start(*argv: str, boot: uuid.UUID | None = None, cwd: pathlib.Path = tmp_path) -> int:
        variables = {} if boot is None else {workspace.BOOT_VARIABLE: str(boot)}
        child = subprocess.Popen(
            ["/bin/sh", "-c", f"echo on; exec {' '.join(argv)}"],
            env={"PATH": os.environ["PATH"]} | variables,
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


def test_only_processes_of_the_boot_are_killed_when_others_are_running(
    start: Callable[..., int], is_running: Callable[[int], bool]
) -> None:
    boot, other = uuid.uuid4(), uuid.uuid4()
    mine, also_mine = start("sleep 1000", boot=boot), start("sleep 1000", boot=boot)
    other_boot, no_boot = start("sleep 1000", boot=other), start("sleep 1000")
    assert boot_cleanup.clean_up_boot(boot) == CleanupResult(2, is_complete=True)
    assert [is_running(pid) for pid in (mine, also_mine, other_boot, no_boot)] == [
        False, False, True, True,
    ]  # fmt: skip


def test_process_is_found_by_its_folder_when_it_dropped_its_environment(
    start: Callable[..., int], is_running: Callable[[int], bool]
) -> None:
    boot = uuid.uuid4()
    home = workspace.boot_folder(boot) / "1"
    home.mkdir(parents=True)
    pid = start("env", "-i", "sleep", "1000", boot=boot, cwd=home)
    assert boot_cleanup.clean_up_boot(boot).killed == 1
    assert not is_running(pid)


def test_process_is_killed_when_it_is_stopped(
    start: Callable[..., int], is_running: Callable[[int], bool]
) -> None:
    boot = uuid.uuid4()
    pid = start("sleep 1000", boot=boot)
    os.kill(pid, signal.SIGSTOP)
    assert boot_cleanup.clean_up_boot(boot).is_complete
    assert not is_running(pid)


def test_process_is_spared_when_its_pid_was_reused(
    start: Callable[..., int], is_running: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = start("sleep 1000")
    checks: list[int] = []

    def is_of(one: int, _: uuid.UUID) -> bool:
        # Only the first check finds the process of the boot, which then exits.
        checks.extend([one] if one == pid else [])
        return one == pid and len(checks) == 1

    monkeypatch.setattr(boot_cleanup, "_is_of", is_of)
    assert boot_cleanup.clean_up_boot(uuid.uuid4()) == CleanupResult(0, is_complete=True)
    assert is_running(pid)


def test_folder_of_a_boot_is_removed() -> None:
    boot = uuid.uuid4()
    (workspace.boot_folder(boot) / "1" / "deep").mkdir(parents=True)
    assert boot_cleanup.clean_up_boot(boot) == CleanupResult(0, is_complete=True)
    assert not workspace.boot_folder(boot).exists()


def test_cleanup_is_incomplete_when_processes_cannot_be_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(boot_cleanup, "_PROC", tmp_path)
    assert boot_cleanup.clean_up_boot(uuid.uuid4()) == CleanupResult(0, is_complete=False)


def test_running_runner_is_spared_when_another_folder_is_named_after_its_boot(
    start: Callable[..., int], is_running: Callable[[int], bool], tmp_path: pathlib.Path
) -> None:
    boot = uuid.uuid4()
    workspace.boot_folder(boot).mkdir()
    lock = workspace.lock_folder(workspace.boot_folder(boot))
    (tmp_path / f"workron-{boot}").mkdir()
    pid = start("sleep 1000", boot=boot)
    boot_cleanup.clean_up_lost_runners()
    os.close(lock)
    assert is_running(pid)
