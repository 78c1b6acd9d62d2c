"""What a worker's name proves about its process."""

import os
import pathlib
import subprocess
import sys

import pytest

from workron_worker import identity

_SAY_NAME = "from workron_worker import identity; print(identity.process_name()); input()"


def _start() -> tuple[subprocess.Popen[str], str]:
    child = subprocess.Popen(
        [sys.executable, "-c", _SAY_NAME],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    return child, child.stdout.readline().strip()


def test_worker_is_not_gone_while_its_process_lives() -> None:
    child, name = _start()
    try:
        assert not identity.is_dead(name)
    finally:
        child.communicate("\n")


def test_worker_is_gone_when_its_process_has_ended() -> None:
    child, name = _start()
    child.communicate("\n")
    assert identity.is_dead(name)


def test_nobody_is_gone_where_machines_cannot_be_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(identity, "_PROC", tmp_path)
    child, _ = _start()
    child.communicate("\n")
    assert not identity.is_dead(f"{identity.process_name().split(':')[0]}:{child.pid}:0")


def test_worker_is_gone_when_only_its_zombie_is_left() -> None:
    child, name = _start()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert identity.is_dead(name)
    child.communicate()


def test_worker_is_gone_when_its_pid_is_now_another_process() -> None:
    host, pid, start = identity.process_name().split(":")
    assert identity.is_dead(f"{host}:{pid}:{int(start) - 1}")


@pytest.mark.parametrize(
    "name", ["elsewhere:1:1", "elsewhere-00000000:999999:1", "pod-uid", "", "a:b:c", ":::"]
)
def test_worker_is_not_taken_for_gone_when_it_is_not_of_this_machine(name: str) -> None:
    assert not identity.is_dead(name)


def test_worker_is_not_taken_for_gone_when_its_name_makes_no_sense() -> None:
    host = identity.process_name().partition(":")[0]
    assert not identity.is_dead(f"{host}:x:1")


def test_name_of_a_pods_worker_proves_nothing_of_any_process() -> None:
    uid = "0b5fbd2e-0f39-4b8c-8bd4-0d1f6a0d2a51"
    assert identity.pod_name(uid.upper()) == uid
    assert not identity.is_dead(uid)


@pytest.mark.parametrize("wrong", ["", "worker-0", "host:1:2"])
def test_what_is_no_uid_of_a_pod_names_nobody(wrong: str) -> None:
    with pytest.raises(ValueError, match="badly formed"):
        identity.pod_name(wrong)
