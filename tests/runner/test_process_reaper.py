"""A runner kills and reaps what a command leaves behind."""

import pathlib
import select
from collections.abc import Callable

from tests.runner.fake_agent import FakeAgent
from workron_runner import protocol

_DAEMON = (
    "env -i setsid setsid sh -c 'cd /; echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000'"
)
"""Leaves its group, its session, its environment and its folder, twice over."""


def _leave(pid: pathlib.Path, *, pipe: str) -> str:
    return f"{_DAEMON.format(pid=pid)} {pipe} & while ! test -e {pid}; do :; done"


def test_daemon_is_dead_at_the_end_when_it_left_group_session_and_folder(
    agent: FakeAgent, tmp_path: pathlib.Path, is_running: Callable[[int], bool]
) -> None:
    pid = tmp_path / "pid"
    claim = agent.run(_leave(pid, pipe=">/dev/null 2>&1"))
    assert agent.ended(claim).exit_code == 0
    assert not is_running(int(pid.read_text()))


def test_end_is_reported_when_a_daemon_holds_the_pipe(
    agent: FakeAgent, tmp_path: pathlib.Path, is_running: Callable[[int], bool]
) -> None:
    pid = tmp_path / "pid"
    claim = agent.run(_leave(pid, pipe="") + "; echo done")
    assert agent.ended(claim).exit_code == 0
    assert agent.captured[claim] == b"done\n"
    assert not is_running(int(pid.read_text()))


def test_daemon_keeps_running_when_only_another_command_ends(
    agent: FakeAgent, tmp_path: pathlib.Path, is_running: Callable[[int], bool]
) -> None:
    mine, others = tmp_path / "mine", tmp_path / "others"
    claim = agent.run(f"{_leave(mine, pipe='')}; echo on; exec sleep 1000")
    agent.read_line(claim)
    agent.ended(agent.run(_leave(others, pipe="")))
    assert not is_running(int(others.read_text()))
    assert is_running(int(mine.read_text()))
    agent.send(protocol.Kill(claim, 0))
    agent.ended(claim)
    assert not is_running(int(mine.read_text()))


def test_zombie_of_a_daemon_is_reaped_when_its_command_still_runs(
    agent: FakeAgent, tmp_path: pathlib.Path
) -> None:
    pid = tmp_path / "pid"
    claim = agent.run(f"{_leave(pid, pipe='')}; kill $(cat {pid}); echo on; exec sleep 1000")
    agent.read_line(claim)
    while pathlib.Path(f"/proc/{pid.read_text().strip()}").exists():
        select.select([], [], [], 0.005)


def test_all_descendants_are_killed_when_they_multiply(
    agent: FakeAgent, tmp_path: pathlib.Path
) -> None:
    # Each starts two in sessions of their own, six generations long: 126 at most.
    tree = tmp_path / "tree"
    tree.write_text("test $1 = 0 && exec sleep 1000\nn=$(($1 - 1))\n"
                    "setsid sh $0 $n & setsid sh $0 $n & wait\n")  # fmt: skip
    claim = agent.run(f"setsid sh {tree} 6 & sleep 0.1; exit 7")
    assert agent.ended(claim).exit_code == 7
    left = [one for one in pathlib.Path("/proc").glob("[0-9]*/cmdline") if _names(one, tree)]
    assert left == []


def _names(cmdline: pathlib.Path, word: pathlib.Path) -> bool:
    try:
        return str(word).encode() in cmdline.read_bytes()
    except OSError:
        return False


def test_daemon_keeps_running_when_its_command_has_just_started(agent: FakeAgent) -> None:
    leave = "(setsid sh -c 'sleep 0.1; echo on' &); exec sleep 1000"
    for _ in range(20):
        others = [agent.run(["true"]) for _ in range(4)]
        claim = agent.run(leave, grace=0)
        for other in others:
            agent.ended(other)
        agent.read_line(claim)
        agent.send(protocol.Kill(claim, 0))
        agent.ended(claim)
