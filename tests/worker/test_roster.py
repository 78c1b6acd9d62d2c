"""The notes by which a worker finds what killed ones left on this machine."""

import os
import pathlib
import subprocess
import uuid
from collections.abc import Callable, Iterator

import pytest

from workron_runner import leftovers, workspace
from workron_worker import identity


@pytest.fixture(autouse=True)
def _temporary(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def left() -> Iterator[tuple[uuid.UUID, int]]:
    """A process that bears the mark of a boot."""
    boot = uuid.uuid4()
    mark = {workspace.BOOT_VARIABLE: str(boot)}
    command = ["/bin/sh", "-c", "echo on; exec sleep 1000"]
    with subprocess.Popen(command, env=mark, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield boot, child.pid
        child.kill()


def _note(boot: uuid.UUID, name: str) -> pathlib.Path:
    note = workspace.boot_folder(boot).with_suffix(".worker")
    note.write_text(name)
    return note


def _dead_name() -> str:
    host, pid, start = identity.process_name().split(":")
    return f"{host}:{pid}:{int(start) - 1}"


def test_what_a_dead_worker_left_is_ended_and_its_note_goes(
    left: tuple[uuid.UUID, int], lives: Callable[[int], bool], tmp_path: pathlib.Path
) -> None:
    _note(left[0], _dead_name())
    identity.clean_up_dead_workers()
    assert not lives(left[1])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["own", "elsewhere-12345678:1:1", "", "\udcff"])
def test_worker_of_which_nobody_knows_that_it_is_gone_is_left_alone(
    left: tuple[uuid.UUID, int], lives: Callable[[int], bool], name: str
) -> None:
    written = os.fsencode(identity.process_name() if name == "own" else name)
    workspace.boot_folder(left[0]).with_suffix(".worker").write_bytes(written)
    identity.clean_up_dead_workers()
    assert lives(left[1])


def test_note_of_somebody_else_is_not_believed(
    left: tuple[uuid.UUID, int], lives: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    _note(left[0], _dead_name())
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    identity.clean_up_dead_workers()
    assert lives(left[1])


def test_link_to_a_note_is_not_followed(
    left: tuple[uuid.UUID, int], lives: Callable[[int], bool], tmp_path: pathlib.Path
) -> None:
    note = _note(left[0], _dead_name())
    note.rename(tmp_path / "elsewhere")
    note.symlink_to(tmp_path / "elsewhere")
    identity.clean_up_dead_workers()
    assert lives(left[1])


@pytest.mark.parametrize("make", [pathlib.Path.mkdir, os.mkfifo])
def test_what_is_no_file_keeps_no_worker_from_sweeping(
    left: tuple[uuid.UUID, int],
    lives: Callable[[int], bool],
    make: Callable[[pathlib.Path], None],
) -> None:
    """Everybody can make something of that name in the folder that all share."""
    make(workspace.boot_folder(uuid.uuid4()).with_suffix(".worker"))
    _note(left[0], _dead_name())
    identity.clean_up_dead_workers()
    assert not lives(left[1])


def test_note_that_cannot_be_read_is_left_alone(
    left: tuple[uuid.UUID, int], lives: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    _note(left[0], _dead_name())
    with monkeypatch.context() as patched:
        patched.setattr("os.read", lambda *_: pathlib.Path("/none").stat())
        identity.clean_up_dead_workers()
    assert lives(left[1])


def test_worker_that_could_not_be_swept_up_stays_on_the_roster(
    left: tuple[uuid.UUID, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    note = _note(left[0], _dead_name())
    monkeypatch.setattr(
        leftovers, "clean_up_boot", lambda _: leftovers.CleanupResult(1, is_complete=False)
    )
    identity.clean_up_dead_workers()
    assert note.exists()


def test_worker_is_on_the_roster_while_it_runs(tmp_path: pathlib.Path) -> None:
    with identity.recorded_worker(uuid.uuid4()):
        [note] = tmp_path.iterdir()
        assert note.read_text() == identity.process_name()
        identity.clean_up_dead_workers()
        assert note.exists()
    assert list(tmp_path.iterdir()) == []


def test_worker_that_cannot_be_noted_works_all_the_same(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with identity.recorded_worker(uuid.uuid4()):
        pass
