"""Commands with uids of their own; only root may give them any."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.runner import ground
from tests.runner.mate import COMMAND, Mate, environment
from workron_runner import protocol, uids, workspace
from workron_runner.uids import UidPool, UidRange
from workron_runner.workspace import Workspace, WorkspaceError, Workspaces

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may start commands with another uid"
)
_FIRST = ground.UIDS.first
_OF_THE_LIBRARY = 0b11 << 31
_OPTIONS = ["--uids", str(ground.UIDS), "--processes", "30"]
_VICTIM = "echo secret > file; echo $$ $PWD $WORKRON_INPUTS; exec sleep 1000"
_REACHES_RUNNER = (
    'for task in /proc/{pid}/task/*; do kill -0 "${{task##*/}}" && exit 0; done; false'
)


@pytest.fixture
def passable() -> Iterator[pathlib.Path]:
    with ground.passable() as folder:
        yield folder


@pytest.fixture
def open_or_not(request: pytest.FixtureRequest, passable: pathlib.Path) -> Iterator[Mate]:
    one = Mate(passable, *request.param)
    one.greet()
    yield one
    one.close()
    assert not one.folder.exists()
    assert not any(uids.is_used(uid) for uid in range(ground.UIDS.first, ground.UIDS.last + 1))


@pytest.fixture
def own(passable: pathlib.Path) -> Iterator[Mate]:
    one = Mate(passable, *_OPTIONS)
    one.greet()
    yield one
    one.close()
    assert not one.folder.exists()
    assert not any(uids.is_used(uid) for uid in range(ground.UIDS.first, ground.UIDS.last + 1))


def _uid_of(mate: Mate, claim: str) -> int:
    return int(mate.word(claim))


@pytest.mark.parametrize(("open_or_not", "is_reached"), [(_OPTIONS, False), ([], True)],
                         indirect=["open_or_not"])  # fmt: skip
@pytest.mark.parametrize(
    "deed",
    [
        "kill -0 {pid}",
        "cat /proc/{pid}/environ",
        "readlink /proc/{pid}/cwd",
        "ls {home}",
        "cat {home}/file",
        "cat {inputs}",
        "touch {inputs}",
        "ls {home}/..",
        "touch {home}/../other",
    ],
)
def test_command_reaches_another_only_where_they_share_a_uid(
    open_or_not: Mate, deed: str, *, is_reached: bool
) -> None:
    line = open_or_not.word(open_or_not.run(_VICTIM, environment={"TOKEN": "x"}))
    pid, home, inputs = line.decode().split()
    ended = open_or_not.ended(open_or_not.run(deed.format(pid=pid, home=home, inputs=inputs)))
    assert (ended.exit_code == 0) is is_reached


def test_folder_of_the_runner_can_be_passed_and_not_listed(own: Mate) -> None:
    assert own.ended(own.run("cd $HOME/../../.. && ls")).exit_code != 0
    assert own.ended(own.run("ls $HOME/../..")).exit_code != 0
    assert own.ended(own.run("ls $HOME/..")).exit_code == 0


@pytest.mark.parametrize("options", [[], ["--isolate"]])
def test_command_reaches_no_thread_of_the_runner(
    passable: pathlib.Path, options: list[str]
) -> None:
    mate = Mate(passable, *_OPTIONS, *options)
    mate.greet()
    deed = _REACHES_RUNNER.format(pid=mate.child.pid)
    assert mate.ended(mate.run(deed)).exit_code == 1
    mate.close()


def test_command_is_one_uid_through_and_through(own: Mate) -> None:
    claim = own.run("cat /proc/self/status", output_limit_bytes=10_000)
    assert own.ended(claim).exit_code == 0
    lines = own.kept[claim].decode().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    uid = status["Uid"].split()[0]
    assert ground.UIDS.first < int(uid) <= ground.UIDS.last
    assert status["Uid"].split() == status["Gid"].split() == [uid] * 4
    assert status["Groups"].split() == []
    powers = {name for name in status if name.startswith("Cap") and int(status[name], 16)}
    # What it could have at most says nothing without a way to get it.
    assert powers <= {"CapBnd"}
    assert status["NoNewPrivs"].strip() == "1"


def test_command_does_not_become_root_by_a_program_that_others_do(
    own: Mate, passable: pathlib.Path
) -> None:
    tool = passable / "id"
    shutil.copy(shutil.which("id") or "", tool)
    tool.chmod(0o4755)
    anybody = subprocess.run([tool, "-u"], user=_FIRST, stdout=subprocess.PIPE, check=True)
    assert anybody.stdout == b"0\n", "this folder has no such programs, so the test shows nothing"
    claim = own.run([str(tool), "-u"])
    assert own.ended(claim).exit_code == 0
    assert ground.UIDS.first < int(own.kept[claim]) <= ground.UIDS.last


def test_command_hears_signals_that_its_runner_was_started_without(
    passable: pathlib.Path,
) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        mate = Mate(passable, *_OPTIONS)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    mate.greet()
    claim = mate.run(["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"])
    assert mate.ended(claim).exit_code == 0
    told = [int(line.split()[1], 16) for line in mate.kept[claim].splitlines()]
    # The C library keeps two signals for itself, and may have set them before this test began.
    assert [mask & ~_OF_THE_LIBRARY for mask in told] == [0, 0]
    mate.close()


def test_inputs_and_result_are_the_commands_own(own: Mate) -> None:
    claim = own.run('cat $WORKRON_INPUTS > new; mv new "$WORKRON_RESULT"; echo >> $WORKRON_INPUTS',
                    inputs='{"a": 1}')  # fmt: skip
    assert own.ended(claim).exit_code == 0
    assert own.results[claim] == b'{"a": 1}'


def test_result_that_is_somebody_elses_file_is_not_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "result"
    path.write_text("1")
    assert workspace.read_result(path, owner=os.getuid()) == b"1"
    with pytest.raises(workspace.ResultFileError, match="a file of another user"):
        workspace.read_result(path, owner=_FIRST)


def test_daemon_that_left_everything_but_its_uid_is_dead_at_the_end(
    own: Mate, passable: pathlib.Path, lives: Callable[[int], bool]
) -> None:
    drop = passable / "drop"
    drop.mkdir()
    drop.chmod(0o777)
    daemon = f"cd /; echo $$ > {drop}/new; mv {drop}/new {drop}/pid; exec sleep 1000"
    twice = f"setsid sh -c 'setsid env -i sh -c \"$0\" &' '{daemon}'"
    wait = f"while ! test -e {drop}/pid; do :; done"
    assert own.ended(own.run(f"{twice}; {wait}")).exit_code == 0
    assert not lives(int((drop / "pid").read_text()))


def test_process_that_is_no_child_of_the_runner_is_ended_with_its_uid(own: Mate) -> None:
    claim, other = own.run("id -u; exec sleep 1000"), own.run("id -u; exec sleep 1000")
    uid, spared = _uid_of(own, claim), _uid_of(own, other)
    strangers = [
        subprocess.Popen(["/bin/sleep", "1000"], user=one, group=one, extra_groups=[], cwd="/")
        for one in (uid, spared)
    ]
    own.say(protocol.Kill(claim, 0))
    # Whoever is not waited for has not gone, and so holds up the end.
    assert strangers[0].wait() == -9
    assert own.ended(claim).cause == "kill"
    assert strangers[1].poll() is None
    own.say(protocol.Kill(other, 0))
    assert strangers[1].wait() == -9
    own.ended(other)


def test_what_forks_faster_than_it_can_be_looked_for_is_ended(
    own: Mate, passable: pathlib.Path
) -> None:
    comet = passable / "comet"
    # One process at a time, and at most so many one after the other.
    comet.write_text('test "$1" -gt 3000 || setsid sh "$0" $(($1 + 1)) &')
    comet.chmod(0o755)
    claim = own.run(f"id -u; sh {comet} 0")
    uid = _uid_of(own, claim)
    assert own.ended(claim).exit_code == 0
    assert not uids.is_used(uid)


def test_fork_bomb_harms_nobody_and_leaves_nothing(own: Mate) -> None:
    # With no limit at all there would be 254 of them.
    bomb = "bomb() { test $1 = 0 || { bomb $(($1 - 1)) & bomb $(($1 - 1)) & }; sleep 1000; }"
    sibling = own.run("id -u; exec sleep 1000")
    _uid_of(own, sibling)
    claim = own.run(f"id -u; {bomb}; bomb 6")
    uid = _uid_of(own, claim)
    own.hear(lambda: b"ork" in own.output[claim])
    assert _count(uid) <= 30
    assert own.ended(own.run("true & true & wait")).exit_code == 0
    own.say(protocol.Kill(claim, 0))
    own.ended(claim)
    assert not uids.is_used(uid)
    own.say(protocol.Kill(sibling, 0))
    assert own.ended(sibling).cause == "kill"


def test_uids_are_given_in_turn_and_none_is_given_twice(passable: pathlib.Path) -> None:
    mate = Mate(passable, "--uids", f"{_FIRST}-{_FIRST + 2}")
    mate.greet()
    one, other = mate.run("id -u; exec sleep 1000"), mate.run("id -u; exec sleep 1000")
    assert [_uid_of(mate, claim) for claim in (one, other)] == [_FIRST + 1, _FIRST + 2]
    refused = mate.refused(mate.run("true"))
    assert refused.fault == "machine"
    assert refused.message == f"no uid of {_FIRST}-{_FIRST + 2} is free for another command"
    mate.say(protocol.Kill(one, 0))
    mate.ended(one)
    assert mate.ended(mate.run("true")).exit_code == 0
    mate.close()


def test_command_that_was_refused_keeps_no_uid(passable: pathlib.Path) -> None:
    mate = Mate(passable, "--uids", f"{_FIRST}-{_FIRST + 1}")
    mate.greet()
    assert mate.refused(mate.run(["there-is-no-such-program"])).fault == "job"
    assert mate.ended(mate.run("true")).exit_code == 0
    mate.close()


def test_uid_that_somebody_runs_as_is_passed_over() -> None:
    drawn = UidPool(ground.UIDS)
    with subprocess.Popen(["/bin/sleep", "1000"], user=_FIRST + 1) as sleeper:
        assert drawn.acquire() == _FIRST + 2
        drawn.kill_all()
        assert sleeper.wait() == -9
    few = UidPool(UidRange(_FIRST, _FIRST + 1))
    few.acquire()
    with pytest.raises(WorkspaceError, match="no uid of"):
        few.acquire()


@pytest.mark.parametrize("told", [(0, 0), (0, 5), (5, 0), (_FIRST, _FIRST + 1)])
def test_signal_to_all_is_not_sent_by_anybody_who_may_do_more(
    monkeypatch: pytest.MonkeyPatch, told: tuple[int, int]
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(uids, "is_used", lambda _: True)
    monkeypatch.setattr(os, "kill", lambda pid, _: sent.append(pid))
    # It says that it is somebody else, and is root all the same.
    monkeypatch.setattr(uids, "_set_uids", lambda *_: None)
    monkeypatch.setattr(uids, "_current_uids", lambda: told)
    with pytest.raises(PermissionError, match="cannot be killed alone"):
        UidPool(ground.UIDS).kill(_FIRST + 1)
    assert sent == []


def test_signal_to_all_is_not_sent_as_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    become = uids._set_uids
    other = (_FIRST + 3, _FIRST + 4, 0)
    monkeypatch.setattr(uids, "is_used", lambda _: True)
    monkeypatch.setattr(os, "kill", lambda pid, _: sent.append(pid))
    monkeypatch.setattr(uids, "_set_uids", lambda *ids: become(*(other if any(ids) else ids)))
    with pytest.raises(PermissionError, match="cannot be killed alone"):
        UidPool(ground.UIDS).kill(_FIRST + 1)
    assert sent == []
    assert os.getresuid() == (0, 0, 0)


def test_thread_that_ended_a_uid_is_root_again() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"], user=_FIRST + 1) as sleeper:
        assert UidPool(ground.UIDS).kill(_FIRST + 1)
        assert sleeper.wait() == -9
    assert os.getresuid() == (0, 0, 0)
    assert not UidPool(ground.UIDS).kill(_FIRST + 1)


def test_runner_in_a_folder_that_others_cannot_pass_says_which(passable: pathlib.Path) -> None:
    closed = passable / "closed"
    closed.mkdir(mode=0o700)
    mate = Mate(closed, *_OPTIONS)
    mate.say(protocol.Hello(protocol.VERSION, mate.boot.hex, 0))
    assert f"cannot pass through {closed}" in (mate.farewell().reason or "")
    mate.close()


@pytest.fixture
def scratch(passable: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspaces]:
    monkeypatch.setattr("tempfile.tempdir", str(passable))
    one = Workspaces(uuid.uuid4(), has_uids=True)
    yield one
    one.close()
    assert list(passable.iterdir()) == []


def test_place_that_nobody_touched_is_given_to_the_same_uid_alone(scratch: Workspaces) -> None:
    place = scratch.acquire("{}", _FIRST)
    scratch.release(place)
    assert scratch.acquire("{}", _FIRST + 1).directory != place.directory
    assert scratch.acquire("{}", _FIRST) == place


@pytest.mark.parametrize(
    "touch",
    [
        lambda place: (place.directory / "file").touch(),
        lambda place: (place.directory.parent / "file").touch(),
        lambda place: place.directory.parent.chmod(0o777),
        lambda place: place.directory.chmod(0o777),
        lambda place: place.result.touch(),
        lambda place: place.inputs.write_text("[]"),
    ],
)
def test_place_of_a_uid_that_was_touched_is_removed(
    scratch: Workspaces, touch: Callable[[Workspace], object]
) -> None:
    place = scratch.acquire("{}", _FIRST)
    touch(place)
    scratch.release(place)
    assert scratch.acquire("{}", _FIRST).directory != place.directory


def _count(uid: int) -> int:
    count = 0
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            count += folder.stat().st_uid == uid
        except FileNotFoundError:
            continue
    return count


def test_before_a_runner_waits_what_a_killed_one_left_under_its_uids_is_dead(
    passable: pathlib.Path,
) -> None:
    path = passable / "door"
    program = f"import os; os.setuid({_FIRST + 1}); print(flush=True); os.read(0, 1)"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as orphan:
        assert orphan.stdout is not None
        orphan.stdout.readline()
        command = [*COMMAND, "--socket", str(path), *_OPTIONS]
        with subprocess.Popen(command, env=environment(passable), stderr=subprocess.PIPE) as runner:
            assert runner.stderr is not None
            assert b"waiting for an agent" in runner.stderr.readline()
            assert orphan.wait() == -signal.SIGKILL
            runner.terminate()
