"""Commands in domains of their own; only where the kernel has them."""

import os
import pathlib
from collections.abc import Callable, Iterator

import pytest

from tests.runner.mate import Mate
from workron_runner import __main__, sandbox

_NEEDS_LANDLOCK = pytest.mark.skipif(
    not sandbox.has_landlock(), reason="this kernel has no Landlock scopes"
)
_ISOLATE = ["--isolate"]
_TRY = ["--try-isolate"]
_VICTIM = "echo $$; exec sleep 1000"


@pytest.fixture
def open_or_not(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Mate]:
    one = Mate(tmp_path, *request.param)
    one.greet()
    yield one
    one.close()


@_NEEDS_LANDLOCK
@pytest.mark.parametrize(
    ("open_or_not", "is_reached"),
    [(_ISOLATE, False), (_TRY, False), ([], True)],
    indirect=["open_or_not"],
)
@pytest.mark.parametrize("deed", ["kill -0 {pid}", "readlink /proc/{pid}/cwd", "kill -0 $PPID"])
def test_command_reaches_another_only_where_it_is_not_isolated(
    open_or_not: Mate, deed: str, *, is_reached: bool
) -> None:
    pid = int(open_or_not.word(open_or_not.run(_VICTIM)))
    ended = open_or_not.ended(open_or_not.run(deed.format(pid=pid)))
    assert (ended.exit_code == 0) is is_reached


@_NEEDS_LANDLOCK
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take a right away from itself")
@pytest.mark.parametrize(
    ("open_or_not", "is_read"), [(_ISOLATE, False), ([], True)], indirect=["open_or_not"]
)
def test_environment_of_an_isolated_command_is_closed_to_who_has_no_right_of_roots(
    open_or_not: Mate, *, is_read: bool
) -> None:
    rightless = "exec setpriv --bounding-set=-all"
    victim = open_or_not.run(f"{rightless} sh -c '{_VICTIM}'")
    pid = int(open_or_not.word(victim))
    ended = open_or_not.ended(open_or_not.run(f"{rightless} cat /proc/{pid}/environ"))
    assert (ended.exit_code == 0) is is_read


@_NEEDS_LANDLOCK
@pytest.mark.parametrize("open_or_not", [_ISOLATE], indirect=True)
@pytest.mark.parametrize(
    "deed", ["grep -q sleep /proc/{pid}/cmdline", "ls {folder} && touch {folder}/seen"]
)
def test_isolated_command_sees_the_words_and_files_of_another(open_or_not: Mate, deed: str) -> None:
    said = open_or_not.run("pwd; echo $$; exec sleep 1000")
    folder, pid = (open_or_not.word(said).decode() for _ in range(2))
    deed = deed.format(pid=pid, folder=folder)
    assert open_or_not.ended(open_or_not.run(deed)).exit_code == 0


@_NEEDS_LANDLOCK
@pytest.mark.parametrize("open_or_not", [_ISOLATE], indirect=True)
def test_isolated_command_reaches_what_it_started_itself(open_or_not: Mate) -> None:
    command = "sleep 1000 & readlink /proc/$!/cwd && kill $!; wait $!; test $? = 143"
    assert open_or_not.ended(open_or_not.run(command)).exit_code == 0


@_NEEDS_LANDLOCK
@pytest.mark.parametrize("open_or_not", [_ISOLATE], indirect=True)
def test_isolated_command_is_ended_whole_and_its_thread_with_it(
    open_or_not: Mate, tmp_path: pathlib.Path, lives: Callable[[int], bool]
) -> None:
    pid, tasks = tmp_path / "pid", pathlib.Path(f"/proc/{open_or_not.child.pid}/task")
    open_or_not.ended(open_or_not.run("true"))
    before = len(list(tasks.iterdir()))
    leave = f"env -i setsid sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000' &"
    open_or_not.ended(open_or_not.run(f"{leave} while ! test -e {pid}; do :; done"))
    assert not lives(int(pid.read_text()))
    # A thread that was joined is not yet gone from there.
    while len(list(tasks.iterdir())) > before:
        pass


def test_isolation_that_the_kernel_does_not_have_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sandbox, "has_landlock", lambda: False)
    monkeypatch.setattr("sys.argv", ["runner", "--isolate", "--socket", str(tmp_path / "door")])
    with pytest.raises(SystemExit):
        __main__._parse(__main__._parser())
    assert "Linux 6.12 or newer" in capsys.readouterr().err


def test_isolation_that_was_to_be_tried_is_done_without_and_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sandbox, "has_landlock", lambda: False)
    options = __main__._parser().parse_args([*_TRY, "--socket", "door"])
    assert __main__._is_isolating(options) is False
    assert "commands are not isolated from each other" in capsys.readouterr().err
