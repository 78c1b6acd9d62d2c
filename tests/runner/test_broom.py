"""What attempts left is removed beside them, and all of it."""

import pathlib
import shutil
import threading
import uuid
from collections.abc import Iterator

import pytest

from workron_runner import workspace
from workron_runner.workspace import FolderRemover


@pytest.fixture
def sweeper() -> Iterator[FolderRemover]:
    one = FolderRemover()
    yield one
    one.close()


def _litter(tmp_path: pathlib.Path, number: int) -> tuple[pathlib.Path, ...]:
    folder, file = tmp_path / str(number), tmp_path / f"{number}.result.json"
    (folder / "deep").mkdir(parents=True)
    file.write_text("{}")
    return folder, file, tmp_path / "never-written"


def test_all_is_removed_when_the_broom_is_put_away(tmp_path: pathlib.Path) -> None:
    sweeper = FolderRemover()
    for number in range(100):
        sweeper.remove(*_litter(tmp_path, number))
    sweeper.close()
    assert list(tmp_path.iterdir()) == []


def test_who_brings_litter_never_waits_and_no_place_is_given_when_there_is_too_much(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    may_go_on = threading.Event()
    monkeypatch.setattr(workspace, "_remove", lambda *_: may_go_on.wait())
    own = workspace.Workspaces(uuid.uuid4())
    own.acquire("{}")
    for number in range(workspace._MAX_PENDING_REMOVALS + 2):
        own._remover.remove(tmp_path / f"none-{number}")
    with pytest.raises(
        workspace.WorkspaceError, match="fills up faster than folders can be removed"
    ):
        own.acquire("{}")
    may_go_on.set()
    own.close()


def test_name_is_free_at_once_though_the_removal_takes_long(
    tmp_path: pathlib.Path, sweeper: FolderRemover, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()
    monkeypatch.setattr(workspace, "_remove", lambda *_: may_go_on.wait())
    litter = _litter(tmp_path, 1)
    sweeper.remove(*litter)
    assert not litter[0].exists()
    assert (tmp_path / "1.removed" / "deep").exists()
    may_go_on.set()


def test_removal_that_fails_does_not_stop_the_next(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: pathlib.Path) -> None:
        raise RecursionError("nested too deeply")

    sweeper = FolderRemover()
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", refuse)
        for number in range(workspace._MAX_PENDING_REMOVALS + 10):
            sweeper.remove(*_litter(tmp_path, number))
        sweeper.close()
    assert len(list(tmp_path.glob("*.removed"))) == workspace._MAX_PENDING_REMOVALS + 10


def test_folder_that_the_command_removed_itself_is_no_trouble(
    tmp_path: pathlib.Path, sweeper: FolderRemover
) -> None:
    litter = _litter(tmp_path, 1)
    shutil.rmtree(litter[0])
    sweeper.remove(*litter)
