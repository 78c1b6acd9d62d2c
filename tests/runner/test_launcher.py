"""A launcher tracks the tags of starting commands, and ends the threads that it started."""

import os
import pathlib
import select
import threading
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from workron_runner import process_reaper
from workron_runner.launcher import Launcher
from workron_runner.process_reaper import AttemptTags
from workron_runner.protocol import Start
from workron_runner.spawn import Launch
from workron_runner.workspace import Workspace


class _FixedTags:
    """Tags that are not set on this process, which could not raise its limit again."""

    def set_next(self) -> int:
        return 77


@pytest.fixture
def create(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Launcher]]:
    monkeypatch.setattr(process_reaper, "AttemptTags", lambda: cast("AttemptTags", _FixedTags()))
    created: list[Launcher] = []

    def create(*, is_preparing: bool) -> Launcher:
        created.append(Launcher((lambda: None) if is_preparing else None))
        return created[-1]

    yield create
    for one in created:
        one.close()


def _begin(launcher: Launcher, folder: pathlib.Path, *argv: str) -> None:
    request = Start(
        claim="0" * 32, argv=list(argv), environment={}, inputs="{}", output_limit_bytes=0,
        window_bytes=0, workdir=None, timeout=None, grace=0, outlives_deadline=False,
    )  # fmt: skip
    launcher.begin(
        request, Workspace(folder, folder, folder), Launch(list(argv), str(folder), {}, None)
    )
    select.select([launcher], [], [])


@pytest.mark.parametrize("is_preparing", [False, True])
def test_tag_is_a_starting_one_until_the_start_is_returned_when_a_command_starts(
    create: Callable[..., Launcher], tmp_path: pathlib.Path, *, is_preparing: bool
) -> None:
    launcher = create(is_preparing=is_preparing)
    _begin(launcher, tmp_path, "/bin/true")
    assert launcher.starting_tags == {77}
    [(_, process)] = launcher.finished()
    assert launcher.starting_tags == set()
    assert not isinstance(process, Exception)
    os.waitpid(process.pid, 0)
    process.close()


@pytest.mark.parametrize("is_preparing", [False, True])
def test_thread_of_a_command_is_ended_when_its_start_fails(
    create: Callable[..., Launcher], tmp_path: pathlib.Path, *, is_preparing: bool
) -> None:
    launcher = create(is_preparing=is_preparing)
    before = set(threading.enumerate())
    _begin(launcher, tmp_path, "/no/such/program")
    [(_, error)] = launcher.finished()
    assert isinstance(error, FileNotFoundError)
    assert set(threading.enumerate()) <= before
    assert len(launcher) == len(launcher.starting_tags) == 0
