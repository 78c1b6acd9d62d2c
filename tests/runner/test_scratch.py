"""A place is as new for every attempt: it is made anew unless nobody can tell the difference."""

import os
import pathlib
import uuid
from collections.abc import Callable, Iterator

import pytest

from workron_runner.workspace import Workspace, WorkspaceError, Workspaces


@pytest.fixture
def scratch(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspaces]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    one = Workspaces(uuid.uuid4())
    yield one
    one.close()
    assert list(tmp_path.iterdir()) == []


def _next_tick(place: Workspace) -> None:
    """Write until a change of time is seen: the clock of files goes in steps."""
    other = place.directory.with_name("tick")
    other.touch()
    while other.stat().st_ctime_ns == place.directory.stat().st_ctime_ns:
        other.touch()
    other.unlink()


def test_place_that_nobody_touched_is_given_to_the_next(scratch: Workspaces) -> None:
    place = scratch.acquire("{}")
    scratch.release(place)
    assert scratch.acquire("{}") == place
    assert scratch.acquire("{}").directory != place.directory


def test_place_with_inputs_of_its_own_is_given_to_nobody_else(scratch: Workspaces) -> None:
    place = scratch.acquire("[1]")
    assert place.inputs.read_text() == "[1]"
    scratch.release(place)
    assert scratch.acquire("[1]").directory != place.directory
    assert scratch.acquire("{}").directory != place.directory
    assert not place.directory.exists()


def _put_a_pipe(path: pathlib.Path) -> None:
    """Leave what is read for ever by who waits for a writer."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "touch",
    [
        lambda place: (place.directory / "file").touch(),
        lambda place: ((place.directory / "file").touch(), (place.directory / "file").unlink()),
        lambda place: place.directory.chmod(0o777),
        lambda place: (place.directory.chmod(0o777), place.directory.chmod(0o755)),
        lambda place: os.utime(place.directory, (1, 1)),
        lambda place: place.directory.rmdir(),
        lambda place: place.directory.rename(place.directory.with_name("elsewhere")),
        lambda place: (place.directory.rmdir(), place.directory.mkdir()),
        lambda place: place.inputs.write_text("[]"),
        lambda place: (place.inputs.write_text("[]"), place.inputs.write_text("{}")),
        lambda place: place.inputs.unlink(),
        lambda place: place.inputs.chmod(0o600),
        lambda place: _put_a_pipe(place.inputs),
        lambda place: (place.inputs.unlink(), place.inputs.symlink_to("/dev/tty")),
        lambda place: os.link(place.inputs, place.directory / "link"),
        lambda place: place.result.touch(),
        lambda place: place.result.symlink_to("nowhere"),
    ],
)
def test_place_that_was_touched_is_given_to_nobody_else(
    scratch: Workspaces, touch: Callable[[Workspace], object]
) -> None:
    place = scratch.acquire("{}")
    _next_tick(place)
    touch(place)
    scratch.release(place)
    assert scratch.acquire("{}").directory != place.directory


def test_place_that_nobody_could_look_into_is_given_to_nobody_else(
    scratch: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(
            "workron_runner.workspace._folder_fingerprint", lambda folder: (folder / "no").stat()
        )
        place = scratch.acquire("{}")
        scratch.release(place)
    assert scratch.acquire("{}").directory != place.directory


def test_place_is_named_where_none_can_be_made(scratch: Workspaces, tmp_path: pathlib.Path) -> None:
    (root,) = tmp_path.iterdir()
    root.rmdir()
    with pytest.raises(WorkspaceError, match="cannot create a folder in"):
        scratch.acquire("{}")
    root.mkdir()
