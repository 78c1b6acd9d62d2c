"""Commands with a uid of their own, which needs root."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.runner import spare_uids
from tests.runner.fake_agent import COMMAND, FakeAgent, environment
from workron_runner import protocol, uids, workspace
from workron_runner.uids import UidPool, UidRange
from workron_runner.workspace import Workspace, WorkspaceError, Workspaces

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may start commands with another uid"
)
_FIRST = spare_uids.UIDS.first
_OF_THE_LIBRARY = 0b11 << 31
_OPTIONS = ["--uids", str(spare_uids.UIDS), "--processes", "30"]
_VICTIM = "echo secret > file; echo $$ $PWD $WORKRON_INPUTS; exec sleep 1000"
_REACHES_RUNNER = (
    'for task in /proc/{pid}/task/*; do kill -0 "${{task##*/}}" && exit 0; done; false'
)


@pytest.fixture
def traversable() -> Iterator[pathlib.Path]:
    with spare_uids.traversable_folder() as folder:
        yield folder


@pytest.fixture
def uid_agent(request: pytest.FixtureRequest, traversable: pathlib.Path) -> Iterator[FakeAgent]:
    with FakeAgent(traversable, *getattr(request, "param", _OPTIONS)) as agent:
        yield agent
    assert not agent.folder.exists()
    first, last = spare_uids.UIDS
    assert not any(uids.is_used(uid) for uid in range(first, last + 1))


def _uid_of(agent: FakeAgent, claim: str) -> int:
    return int(agent.read_line(claim))


@pytest.mark.parametrize(("uid_agent", "is_reached"), [(_OPTIONS, False), ([], True)],
                         indirect=["uid_agent"])  # fmt: skip
@pytest.mark.parametrize(
    "action",
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
def test_command_reaches_another_only_when_they_share_a_uid(
    uid_agent: FakeAgent, action: str, *, is_reached: bool
) -> None:
    line = uid_agent.read_line(uid_agent.run(_VICTIM, environment={"TOKEN": "x"}))
    pid, home, inputs = line.decode().split()
    ended = uid_agent.ended(uid_agent.run(action.format(pid=pid, home=home, inputs=inputs)))
    assert (ended.exit_code == 0) is is_reached


def test_folder_of_the_runner_is_traversable_but_not_listable(uid_agent: FakeAgent) -> None:
    assert uid_agent.ended(uid_agent.run("cd $HOME/../../.. && ls")).exit_code != 0
    assert uid_agent.ended(uid_agent.run("ls $HOME/../..")).exit_code != 0
    assert uid_agent.ended(uid_agent.run("ls $HOME/..")).exit_code == 0


@pytest.mark.parametrize("options", [[], ["--isolate"]])
def test_command_reaches_no_thread_of_the_runner(
    traversable: pathlib.Path, options: list[str]
) -> None:
    with FakeAgent(traversable, *_OPTIONS, *options) as agent:
        action = _REACHES_RUNNER.format(pid=agent.child.pid)
        assert agent.ended(agent.run(action)).exit_code == 1


def test_command_has_one_uid_and_no_privileges(uid_agent: FakeAgent) -> None:
    claim = uid_agent.run("cat /proc/self/status", output_limit_bytes=10_000)
    assert uid_agent.ended(claim).exit_code == 0
    lines = uid_agent.captured[claim].decode().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    uid = status["Uid"].split()[0]
    assert spare_uids.UIDS.first < int(uid) <= spare_uids.UIDS.last
    assert status["Uid"].split() == status["Gid"].split() == [uid] * 4
    assert status["Groups"].split() == []
    capabilities = {name for name in status if name.startswith("Cap") and int(status[name], 16)}
    # The bounding set grants nothing without a way to gain privileges.
    assert capabilities <= {"CapBnd"}
    assert status["NoNewPrivs"].strip() == "1"


def test_command_stays_unprivileged_when_it_runs_a_setuid_program(
    uid_agent: FakeAgent, traversable: pathlib.Path
) -> None:
    tool = traversable / "id"
    shutil.copy(shutil.which("id") or "", tool)
    tool.chmod(0o4755)
    unprotected = subprocess.run([tool, "-u"], user=_FIRST, stdout=subprocess.PIPE, check=True)
    assert unprotected.stdout == b"0\n", (
        "setuid programs have no effect in this folder, so the test shows nothing"
    )
    claim = uid_agent.run([str(tool), "-u"])
    assert uid_agent.ended(claim).exit_code == 0
    assert spare_uids.UIDS.first < int(uid_agent.captured[claim]) <= spare_uids.UIDS.last


def test_command_starts_with_no_blocked_signals_when_the_runner_inherited_some(
    traversable: pathlib.Path,
) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        agent = FakeAgent(traversable, *_OPTIONS)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with agent:
        claim = agent.run(["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"])
        assert agent.ended(claim).exit_code == 0
        masks = [int(line.split()[1], 16) for line in agent.captured[claim].splitlines()]
        # The C library keeps two signals for itself, and may have set them before this test began.
        assert [mask & ~_OF_THE_LIBRARY for mask in masks] == [0, 0]


def test_command_may_write_inputs_and_result_when_it_has_its_own_uid(uid_agent: FakeAgent) -> None:
    command = 'cat $WORKRON_INPUTS > new; mv new "$WORKRON_RESULT"; echo >> $WORKRON_INPUTS'
    claim = uid_agent.run(command, inputs='{"a": 1}')
    assert uid_agent.ended(claim).exit_code == 0
    assert uid_agent.results[claim] == b'{"a": 1}'


def test_result_is_refused_when_another_user_owns_the_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "result"
    path.write_text("1")
    assert workspace.read_result(path, owner=os.getuid()) == b"1"
    with pytest.raises(workspace.ResultFileError, match="a file of another user"):
        workspace.read_result(path, owner=_FIRST)


def test_daemon_is_dead_at_the_end_when_only_its_uid_identifies_it(
    uid_agent: FakeAgent, traversable: pathlib.Path, is_running: Callable[[int], bool]
) -> None:
    drop = traversable / "drop"
    drop.mkdir()
    drop.chmod(0o777)
    daemon = f"cd /; echo $$ > {drop}/new; mv {drop}/new {drop}/pid; exec sleep 1000"
    twice = f"setsid sh -c 'setsid env -i sh -c \"$0\" &' '{daemon}'"
    wait = f"while ! test -e {drop}/pid; do :; done"
    assert uid_agent.ended(uid_agent.run(f"{twice}; {wait}")).exit_code == 0
    assert not is_running(int((drop / "pid").read_text()))


def test_process_is_killed_by_its_uid_when_it_is_not_a_child_of_the_runner(
    uid_agent: FakeAgent,
) -> None:
    claim, other = uid_agent.run("id -u; exec sleep 1000"), uid_agent.run("id -u; exec sleep 1000")
    uid, spared = _uid_of(uid_agent, claim), _uid_of(uid_agent, other)
    others = [
        subprocess.Popen(["/bin/sleep", "1000"], user=one, group=one, extra_groups=[], cwd="/")
        for one in (uid, spared)
    ]
    uid_agent.send(protocol.Kill(claim, 0))
    # A zombie keeps its uid in use, which delays the end.
    assert others[0].wait() == -9
    assert uid_agent.ended(claim).cause == "kill"
    assert others[1].poll() is None
    uid_agent.send(protocol.Kill(other, 0))
    assert others[1].wait() == -9
    uid_agent.ended(other)


def test_all_processes_are_killed_when_they_fork_faster_than_they_can_be_listed(
    uid_agent: FakeAgent, traversable: pathlib.Path
) -> None:
    forker = traversable / "forker"
    # One process at a time, and at most 3,000 in sequence.
    forker.write_text('test "$1" -gt 3000 || setsid sh "$0" $(($1 + 1)) &')
    forker.chmod(0o755)
    claim = uid_agent.run(f"id -u; sh {forker} 0")
    uid = _uid_of(uid_agent, claim)
    assert uid_agent.ended(claim).exit_code == 0
    assert not uids.is_used(uid)


def test_fork_bomb_is_bounded_and_killed_when_processes_are_limited(uid_agent: FakeAgent) -> None:
    # Without a limit there would be 254 processes.
    bomb = "bomb() { test $1 = 0 || { bomb $(($1 - 1)) & bomb $(($1 - 1)) & }; sleep 1000; }"
    sibling = uid_agent.run("id -u; exec sleep 1000")
    _uid_of(uid_agent, sibling)
    claim = uid_agent.run(f"id -u; {bomb}; bomb 6")
    uid = _uid_of(uid_agent, claim)
    uid_agent.receive_until(lambda: b"ork" in uid_agent.output[claim])
    assert _count(uid) <= 30
    assert uid_agent.ended(uid_agent.run("true & true & wait")).exit_code == 0
    uid_agent.send(protocol.Kill(claim, 0))
    uid_agent.ended(claim)
    assert not uids.is_used(uid)
    uid_agent.send(protocol.Kill(sibling, 0))
    assert uid_agent.ended(sibling).cause == "kill"


def test_uids_are_used_in_turn_and_exclusively(traversable: pathlib.Path) -> None:
    with FakeAgent(traversable, "--uids", f"{_FIRST}-{_FIRST + 2}") as agent:
        one, other = agent.run("id -u; exec sleep 1000"), agent.run("id -u; exec sleep 1000")
        assert [_uid_of(agent, claim) for claim in (one, other)] == [_FIRST + 1, _FIRST + 2]
        refused = agent.refused(agent.run("true"))
        assert refused.fault == "machine"
        assert refused.message == f"no uid of {_FIRST}-{_FIRST + 2} is free for another command"
        agent.send(protocol.Kill(one, 0))
        agent.ended(one)
        assert agent.ended(agent.run("true")).exit_code == 0


def test_uid_is_released_when_a_start_is_refused(traversable: pathlib.Path) -> None:
    with FakeAgent(traversable, "--uids", f"{_FIRST}-{_FIRST + 1}") as agent:
        assert agent.refused(agent.run(["there-is-no-such-program"])).fault == "job"
        assert agent.ended(agent.run("true")).exit_code == 0


def test_uid_is_released_when_no_workspace_can_be_created(traversable: pathlib.Path) -> None:
    with FakeAgent(traversable, "--uids", f"{_FIRST}-{_FIRST + 1}") as agent:
        agent.folder.rename(agent.folder.with_name("elsewhere"))
        for _ in range(2):
            assert "cannot create a folder" in agent.refused(agent.run("true")).message


def test_uid_is_skipped_when_a_process_runs_as_it() -> None:
    pool = UidPool(spare_uids.UIDS)
    with subprocess.Popen(["/bin/sleep", "1000"], user=_FIRST + 1) as sleeper:
        assert pool.acquire() == _FIRST + 2
        pool.kill_all()
        assert sleeper.wait() == -9
    small = UidPool(UidRange(_FIRST, _FIRST + 1))
    small.acquire()
    with pytest.raises(WorkspaceError, match="no uid of"):
        small.acquire()


@pytest.mark.parametrize("current", [(0, 0), (0, 5), (5, 0), (_FIRST, _FIRST + 1)])
def test_signal_to_all_is_not_sent_when_the_thread_has_privileges(
    monkeypatch: pytest.MonkeyPatch, current: tuple[int, int]
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(uids, "is_used", lambda _: True)
    monkeypatch.setattr(os, "kill", lambda pid, _: sent.append(pid))
    # It claims to have other uids, and is still root.
    monkeypatch.setattr(uids, "_set_uids", lambda *_: None)
    monkeypatch.setattr(uids, "_current_uids", lambda: current)
    with pytest.raises(PermissionError, match="cannot be killed alone"):
        UidPool(spare_uids.UIDS).kill(_FIRST + 1)
    assert sent == []


def test_signal_to_all_is_not_sent_when_the_uids_are_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[int] = []
    become = uids._set_uids
    other = (_FIRST + 3, _FIRST + 4, 0)
    monkeypatch.setattr(uids, "is_used", lambda _: True)
    monkeypatch.setattr(os, "kill", lambda pid, _: sent.append(pid))
    monkeypatch.setattr(uids, "_set_uids", lambda *ids: become(*(other if any(ids) else ids)))
    with pytest.raises(PermissionError, match="cannot be killed alone"):
        UidPool(spare_uids.UIDS).kill(_FIRST + 1)
    assert sent == []
    assert os.getresuid() == (0, 0, 0)


def test_thread_is_root_again_when_it_has_killed_a_uid() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"], user=_FIRST + 1) as sleeper:
        assert UidPool(spare_uids.UIDS).kill(_FIRST + 1)
        assert sleeper.wait() == -9
    assert os.getresuid() == (0, 0, 0)
    assert not UidPool(spare_uids.UIDS).kill(_FIRST + 1)


def test_error_names_the_folder_when_other_uids_cannot_pass_through(
    traversable: pathlib.Path,
) -> None:
    closed = traversable / "closed"
    closed.mkdir(mode=0o700)
    agent = FakeAgent(closed, *_OPTIONS)
    agent.send(protocol.Hello(protocol.VERSION, agent.boot.hex, 0))
    assert f"cannot pass through {closed}" in (agent.wait_for_shutdown().reason or "")
    agent.close()


@pytest.fixture
def workspaces(traversable: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspaces]:
    monkeypatch.setattr("tempfile.tempdir", str(traversable))
    one = Workspaces(uuid.uuid4(), has_uids=True)
    yield one
    one.close()
    assert list(traversable.iterdir()) == []


def test_workspace_is_reused_only_when_the_uid_is_the_same(workspaces: Workspaces) -> None:
    workspace = workspaces.acquire("{}", _FIRST)
    workspaces.release(workspace)
    assert workspaces.acquire("{}", _FIRST + 1).directory != workspace.directory
    assert workspaces.acquire("{}", _FIRST) == workspace


@pytest.mark.parametrize(
    "touch",
    [
        lambda workspace: (workspace.directory / "file").touch(),
        lambda workspace: (workspace.directory.parent / "file").touch(),
        lambda workspace: workspace.directory.parent.chmod(0o777),
        lambda workspace: workspace.directory.chmod(0o777),
        lambda workspace: workspace.result.touch(),
        lambda workspace: workspace.inputs.write_text("[]"),
    ],
)
def test_workspace_of_a_uid_is_not_reused_when_it_was_touched(
    workspaces: Workspaces, touch: Callable[[Workspace], object]
) -> None:
    workspace = workspaces.acquire("{}", _FIRST)
    touch(workspace)
    workspaces.release(workspace)
    assert workspaces.acquire("{}", _FIRST).directory != workspace.directory


def _count(uid: int) -> int:
    count = 0
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            count += folder.stat().st_uid == uid
        except FileNotFoundError:
            continue
    return count


def test_processes_of_its_uids_are_killed_before_the_socket_appears(
    traversable: pathlib.Path,
) -> None:
    path = traversable / "socket"
    program = f"import os; os.setuid({_FIRST + 1}); print(flush=True); os.read(0, 1)"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as orphan:
        assert orphan.stdout is not None
        orphan.stdout.readline()
        command = [*COMMAND, "--socket", str(path), *_OPTIONS]
        with subprocess.Popen(
            command, env=environment(traversable), stderr=subprocess.PIPE
        ) as runner:
            assert runner.stderr is not None
            assert b"waiting for an agent" in runner.stderr.readline()
            assert orphan.wait() == -signal.SIGKILL
            runner.terminate()
