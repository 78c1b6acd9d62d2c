"""The names of workers, which prove their death, and the records of workers."""

import os
import pathlib
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator

import pytest

from workron_runner import boot_cleanup, workspace
from workron_worker import identity

_PRINT_NAME = "from workron_worker import identity; print(identity.process_name()); input()"
_OWN_NAME = "own"


def _start() -> tuple[subprocess.Popen[str], str]:
    child = subprocess.Popen(
        [sys.executable, "-c", _PRINT_NAME],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    return child, child.stdout.readline().strip()


def test_worker_is_not_dead_when_its_process_runs() -> None:
    child, name = _start()
    try:
        assert not identity.is_dead(name)
    finally:
        child.communicate("\n")


def test_worker_is_dead_when_its_process_has_ended() -> None:
    child, name = _start()
    child.communicate("\n")
    assert identity.is_dead(name)


def test_worker_is_not_dead_when_its_start_time_is_unknown() -> None:
    child, name = _start()
    child.communicate("\n")
    host, pid, _ = name.split(":")
    assert not identity.is_dead(f"{host}:{pid}:0")


def test_worker_is_not_dead_when_the_machine_has_no_ids(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(identity, "_PROC", tmp_path)
    child, _ = _start()
    child.communicate("\n")
    assert not identity.is_dead(f"{identity.process_name().split(':')[0]}:{child.pid}:1")


def test_worker_is_dead_when_its_process_is_a_zombie() -> None:
    child, name = _start()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert identity.is_dead(name)
    child.communicate()


def test_worker_is_dead_when_its_pid_is_another_process() -> None:
    assert identity.is_dead(_dead_name())


@pytest.mark.parametrize(
    "name", ["elsewhere:1:1", "elsewhere-00000000:999999:1", "pod-uid", "", "a:b:c", ":::"]
)
def test_worker_is_not_dead_when_it_is_of_another_machine(name: str) -> None:
    assert not identity.is_dead(name)


def test_worker_is_not_dead_when_its_name_cannot_be_parsed() -> None:
    host = identity.process_name().partition(":")[0]
    assert not identity.is_dead(f"{host}:x:1")


def test_worker_of_a_pod_is_never_dead_by_name() -> None:
    uid = "0b5fbd2e-0f39-4b8c-8bd4-0d1f6a0d2a51"
    assert identity.pod_name(uid.upper()) == uid
    assert not identity.is_dead(uid)


@pytest.mark.parametrize("wrong", ["", "worker-0", "host:1:2"])
def test_pod_name_raises_when_it_is_not_a_uid(wrong: str) -> None:
    with pytest.raises(ValueError, match="badly formed"):
        identity.pod_name(wrong)


@pytest.fixture
def temporary(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def leftover(temporary: pathlib.Path) -> Iterator[tuple[uuid.UUID, int]]:
    """A boot, and the pid of a process that carries it."""
    assert temporary.is_dir()
    boot = uuid.uuid4()
    environment = {workspace.BOOT_VARIABLE: str(boot)}
    command = ["/bin/sh", "-c", "echo on; exec sleep 1000"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield boot, child.pid
        child.kill()


def _write_record(boot: uuid.UUID, name: str) -> pathlib.Path:
    record = workspace.boot_folder(boot).with_suffix(".worker")
    record.write_text(name)
    return record


def _dead_name() -> str:
    host, pid, start = identity.process_name().split(":")
    return f"{host}:{pid}:{int(start) - 1}"


def test_leftovers_and_record_of_a_dead_worker_are_removed(
    leftover: tuple[uuid.UUID, int], lives: Callable[[int], bool], temporary: pathlib.Path
) -> None:
    _write_record(leftover[0], _dead_name())
    identity.clean_up_dead_workers()
    assert not lives(leftover[1])
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", [_OWN_NAME, "elsewhere-12345678:1:1", "", "\udcff"])
def test_leftovers_are_kept_when_their_worker_is_not_proven_dead(
    leftover: tuple[uuid.UUID, int], lives: Callable[[int], bool], name: str
) -> None:
    written = os.fsencode(identity.process_name() if name == _OWN_NAME else name)
    workspace.boot_folder(leftover[0]).with_suffix(".worker").write_bytes(written)
    identity.clean_up_dead_workers()
    assert lives(leftover[1])


def test_record_is_ignored_when_another_user_owns_it(
    leftover: tuple[uuid.UUID, int],
    lives: Callable[[int], bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _write_record(leftover[0], _dead_name())
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    identity.clean_up_dead_workers()
    assert lives(leftover[1])


def test_record_is_ignored_when_it_is_a_link(
    leftover: tuple[uuid.UUID, int], lives: Callable[[int], bool], temporary: pathlib.Path
) -> None:
    record = _write_record(leftover[0], _dead_name())
    record.rename(temporary / "elsewhere")
    record.symlink_to(temporary / "elsewhere")
    identity.clean_up_dead_workers()
    assert lives(leftover[1])


@pytest.mark.parametrize("make", [pathlib.Path.mkdir, os.mkfifo])
def test_cleanup_continues_when_a_record_is_not_a_file(
    leftover: tuple[uuid.UUID, int],
    lives: Callable[[int], bool],
    make: Callable[[pathlib.Path], None],
) -> None:
    """Any user can create something of that name in the shared folder."""
    make(workspace.boot_folder(uuid.uuid4()).with_suffix(".worker"))
    _write_record(leftover[0], _dead_name())
    identity.clean_up_dead_workers()
    assert not lives(leftover[1])


def test_record_is_ignored_when_it_cannot_be_read(
    leftover: tuple[uuid.UUID, int],
    lives: Callable[[int], bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _write_record(leftover[0], _dead_name())
    with monkeypatch.context() as patched:
        patched.setattr("os.read", lambda *_: pathlib.Path("/none").stat())
        identity.clean_up_dead_workers()
    assert lives(leftover[1])


def test_record_is_kept_when_the_cleanup_is_incomplete(
    leftover: tuple[uuid.UUID, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = _write_record(leftover[0], _dead_name())
    incomplete = boot_cleanup.CleanupResult(1, is_complete=False)
    monkeypatch.setattr(boot_cleanup, "clean_up_boot", lambda _: incomplete)
    identity.clean_up_dead_workers()
    assert record.exists()


def test_worker_is_recorded_while_it_runs(temporary: pathlib.Path) -> None:
    with identity.recorded_worker(uuid.uuid4()):
        [record] = temporary.iterdir()
        assert record.read_text() == identity.process_name()
        identity.clean_up_dead_workers()
        assert record.exists()
    assert list(temporary.iterdir()) == []


def test_worker_runs_when_it_cannot_be_recorded(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with identity.recorded_worker(uuid.uuid4()):
        pass
