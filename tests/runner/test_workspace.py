"""A workspace is new for every attempt: it is reused only if no attempt has touched it."""

import os
import pathlib
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.runner.fake_agent import COMMAND, FakeAgent
from workron_runner import workspace
from workron_runner.workspace import FolderRemover, Workspace, WorkspaceError, Workspaces

_WITH_POOL_VARIABLE = ["/usr/bin/env", "POOL=blue", "HOME=/elsewhere", *COMMAND]


@pytest.fixture
def workspaces(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspaces]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    one = Workspaces(uuid.uuid4())
    yield one
    one.close()
    assert list(tmp_path.iterdir()) == []


def _next_tick(acquired: Workspace) -> None:
    """Write until the timestamp differs: the clock of a file system advances in ticks."""
    other = acquired.directory.with_name("tick")
    other.touch()
    while other.stat().st_ctime_ns == acquired.directory.stat().st_ctime_ns:
        other.touch()
    other.unlink()


def test_workspace_is_reused_when_it_is_untouched(workspaces: Workspaces) -> None:
    acquired = workspaces.acquire("{}")
    workspaces.release(acquired)
    assert workspaces.acquire("{}") == acquired
    assert workspaces.acquire("{}").directory != acquired.directory


def test_workspace_is_not_reused_when_it_has_inputs(workspaces: Workspaces) -> None:
    acquired = workspaces.acquire("[1]")
    assert acquired.inputs.read_text() == "[1]"
    workspaces.release(acquired)
    assert workspaces.acquire("[1]").directory != acquired.directory
    assert workspaces.acquire("{}").directory != acquired.directory
    assert not acquired.directory.exists()


def _put_a_pipe(path: pathlib.Path) -> None:
    """Replace a file by a pipe: opening it would wait for a writer."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "touch",
    [
        lambda acquired: (acquired.directory / "file").touch(),
        lambda acquired: (
            (acquired.directory / "file").touch(),
            (acquired.directory / "file").unlink(),
        ),
        lambda acquired: acquired.directory.chmod(0o777),
        lambda acquired: (acquired.directory.chmod(0o777), acquired.directory.chmod(0o755)),
        lambda acquired: os.utime(acquired.directory, (1, 1)),
        lambda acquired: acquired.directory.rmdir(),
        lambda acquired: acquired.directory.rename(acquired.directory.with_name("elsewhere")),
        lambda acquired: (acquired.directory.rmdir(), acquired.directory.mkdir()),
        lambda acquired: acquired.inputs.write_text("[]"),
        lambda acquired: (acquired.inputs.write_text("[]"), acquired.inputs.write_text("{}")),
        lambda acquired: acquired.inputs.unlink(),
        lambda acquired: acquired.inputs.chmod(0o600),
        lambda acquired: _put_a_pipe(acquired.inputs),
        lambda acquired: (acquired.inputs.unlink(), acquired.inputs.symlink_to("/dev/tty")),
        lambda acquired: os.link(acquired.inputs, acquired.directory / "link"),
        lambda acquired: acquired.result.touch(),
        lambda acquired: acquired.result.symlink_to("nowhere"),
    ],
)
def test_workspace_is_not_reused_when_it_was_touched(
    workspaces: Workspaces, touch: Callable[[Workspace], object]
) -> None:
    acquired = workspaces.acquire("{}")
    _next_tick(acquired)
    touch(acquired)
    workspaces.release(acquired)
    assert workspaces.acquire("{}").directory != acquired.directory


def test_workspace_is_not_reused_when_its_fingerprint_cannot_be_read(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(
            "workron_runner.workspace._folder_fingerprint", lambda folder: (folder / "no").stat()
        )
        acquired = workspaces.acquire("{}")
        workspaces.release(acquired)
    assert workspaces.acquire("{}").directory != acquired.directory


def test_error_names_the_folder_when_no_workspace_can_be_created(
    workspaces: Workspaces, tmp_path: pathlib.Path
) -> None:
    (root,) = tmp_path.iterdir()
    root.rmdir()
    with pytest.raises(WorkspaceError, match="cannot create a folder in"):
        workspaces.acquire("{}")
    root.mkdir()


@pytest.fixture
def remover() -> Iterator[FolderRemover]:
    one = FolderRemover()
    yield one
    one.close()


def _leftover(tmp_path: pathlib.Path, number: int) -> tuple[pathlib.Path, ...]:
    folder, file = tmp_path / str(number), tmp_path / f"{number}.result.json"
    (folder / "deep").mkdir(parents=True)
    file.write_text("{}")
    return folder, file, tmp_path / "never-written"


def test_all_folders_are_removed_when_the_remover_is_closed(tmp_path: pathlib.Path) -> None:
    remover = FolderRemover()
    for number in range(100):
        remover.remove(*_leftover(tmp_path, number))
    remover.close()
    assert list(tmp_path.iterdir()) == []


def test_workspace_is_refused_when_too_many_removals_are_pending(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    may_continue = threading.Event()
    monkeypatch.setattr(workspace, "_remove", lambda *_: may_continue.wait())
    workspaces = Workspaces(uuid.uuid4())
    workspaces.acquire("{}")
    for number in range(workspace._MAX_PENDING_REMOVALS + 2):
        workspaces._remover.remove(tmp_path / f"none-{number}")
    with pytest.raises(WorkspaceError, match="fills up faster than folders can be removed"):
        workspaces.acquire("{}")
    may_continue.set()
    workspaces.close()


def test_path_is_free_at_once_when_the_removal_is_slow(
    tmp_path: pathlib.Path, remover: FolderRemover, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_continue = threading.Event()
    monkeypatch.setattr(workspace, "_remove", lambda *_: may_continue.wait())
    leftover = _leftover(tmp_path, 1)
    remover.remove(*leftover)
    assert not leftover[0].exists()
    assert (tmp_path / "1.removed" / "deep").exists()
    may_continue.set()


def test_remover_continues_when_a_removal_fails(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: pathlib.Path) -> None:
        raise RecursionError("nested too deeply")

    remover = FolderRemover()
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", refuse)
        for number in range(workspace._MAX_PENDING_REMOVALS + 10):
            remover.remove(*_leftover(tmp_path, number))
        remover.close()
    assert len(list(tmp_path.glob("*.removed"))) == workspace._MAX_PENDING_REMOVALS + 10


def test_remover_continues_when_the_folder_is_already_gone(
    tmp_path: pathlib.Path, remover: FolderRemover
) -> None:
    leftover = _leftover(tmp_path, 1)
    shutil.rmtree(leftover[0])
    remover.remove(*leftover)


def test_result_is_read_as_raw_bytes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "result").write_bytes(b"\0\xff\n")
    assert workspace.read_result(tmp_path / "result") == b"\0\xff\n"


def test_result_is_empty_when_there_is_no_file(tmp_path: pathlib.Path) -> None:
    assert workspace.read_result(tmp_path / "absent") == b""


def test_result_is_read_when_it_is_exactly_as_large_as_the_limit(tmp_path: pathlib.Path) -> None:
    (tmp_path / "result").write_bytes(b"x" * 16 * 1024)
    assert workspace.read_result(tmp_path / "result") == b"x" * 16 * 1024


def test_result_is_refused_when_it_is_larger_than_the_limit(tmp_path: pathlib.Path) -> None:
    (tmp_path / "result").write_bytes(b"x" * (16 * 1024 + 1))
    with pytest.raises(workspace.ResultFileError, match="larger than 16384 bytes"):
        workspace.read_result(tmp_path / "result")


def test_result_is_refused_at_once_when_it_is_a_pipe(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(workspace.ResultFileError, match="not a regular file"):
        workspace.read_result(tmp_path / "pipe")


def test_result_is_refused_when_it_is_a_link_to_another_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(workspace.ResultFileError, match="cannot be read"):
        workspace.read_result(tmp_path / "link")


def test_result_is_refused_when_it_is_a_folder(tmp_path: pathlib.Path) -> None:
    with pytest.raises(workspace.ResultFileError, match="not a regular file"):
        workspace.read_result(tmp_path)


def test_result_is_sent_as_raw_bytes_when_it_is_not_json(agent: FakeAgent) -> None:
    claim = agent.run(r"printf '\377[' > $WORKRON_RESULT")
    assert agent.ended(claim).result_error is None
    assert agent.results[claim] == b"\xff["


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ln -s /etc/passwd $WORKRON_RESULT", "cannot be read"),
        ("mkfifo $WORKRON_RESULT", "not a regular file"),
        ("head -c 16385 /dev/zero > $WORKRON_RESULT", "larger than 16384 bytes"),
    ],
)
def test_result_is_refused_with_a_reason_when_it_is_not_a_small_file(
    agent: FakeAgent, command: str, words: str
) -> None:
    claim = agent.run(command)
    assert words in (agent.ended(claim).result_error or "")
    assert claim not in agent.results


@pytest.mark.parametrize(("options", "seen"), [([], b"\n"), (["--hand-down"], b"blue\n")])
def test_environment_of_the_runner_is_inherited_only_when_hand_down_is_set(
    tmp_path: pathlib.Path, options: list[str], seen: bytes
) -> None:
    with FakeAgent(tmp_path, *options, command=_WITH_POOL_VARIABLE) as one:
        claim = one.run("echo $POOL")
        assert one.ended(claim).exit_code == 0
        assert one.captured[claim] == seen


def test_variables_of_the_job_win_when_the_environment_is_inherited(tmp_path: pathlib.Path) -> None:
    with FakeAgent(tmp_path, "--hand-down", command=_WITH_POOL_VARIABLE) as one:
        claim = one.run('echo $POOL; test "$HOME" = "$PWD"', environment={"POOL": "red"})
        assert one.ended(claim).exit_code == 0
        assert one.captured[claim] == b"red\n"
