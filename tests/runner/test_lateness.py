"""A runner that looks late, or is told two things at once."""

import os
import select
import signal
from collections.abc import Iterator

import pytest

from tests.runner.mate import Mate
from workron_runner import event_loop, protocol


def _is_over(pid: int) -> bool:
    """Whether a child of another process is dead, if nobody has dealt with it yet."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123 - as short as it gets
        return stat.read().rpartition(")")[2].split()[0] == "Z"


@pytest.fixture
def frozen(mate: Mate) -> Iterator[Mate]:
    """A runner that stands still from when a test says so until it is woken."""
    yield mate
    mate.child.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("fields", [{"timeout": 0.3}, {}], ids=["timeout", "deadline"])
def test_command_that_ended_in_time_is_not_blamed_for_a_late_look(
    frozen: Mate, fields: dict[str, float]
) -> None:
    claim = frozen.run("echo $$; exec sleep 1000", **fields)
    pid = int(frozen.word(claim))
    frozen.say(protocol.Deadline(event_loop.boottime() + (1000 if fields else 0.3)))
    # It hears of the deadline before it stands still.
    frozen.ended(frozen.run("true"))
    frozen.child.send_signal(signal.SIGSTOP)
    os.kill(pid, signal.SIGUSR1)
    until = event_loop.boottime() + 0.4
    while event_loop.boottime() < until or not _is_over(pid):
        select.select([], [], [], 0.01)
    frozen.child.send_signal(signal.SIGCONT)
    ended = frozen.ended(claim)
    assert (ended.cause, ended.signal) == ("exit", signal.SIGUSR1)


def test_order_that_comes_when_the_deadline_has_passed_is_told_to_be_late(mate: Mate) -> None:
    mate.say(protocol.Deadline(event_loop.boottime()))
    assert mate.refused(mate.run("true")).fault == "late"


def test_kill_that_comes_with_its_order_is_obeyed(mate: Mate) -> None:
    claim = mate.run("exec sleep 1000", grace=0)
    mate.say(protocol.Kill(claim, 0))
    assert mate.ended(claim).cause == "kill"


def test_second_kill_makes_no_grace_longer(mate: Mate) -> None:
    claim = mate.run("trap '' TERM; echo on; sleep 1000; sleep 1000")
    mate.word(claim)
    mate.say(protocol.Kill(claim, 0.3))
    mate.say(protocol.Kill(claim, 1000))
    assert mate.ended(claim).signal == signal.SIGKILL


def test_runner_says_goodbye_only_when_what_was_on_its_way_is_dead(mate: Mate) -> None:
    claims = [mate.run("exec sleep 1000") for _ in range(5)]
    mate.say(protocol.Shutdown())
    mate.farewell()
    assert [mate.ended(claim).cause for claim in claims] == ["kill"] * 5


def test_daemon_of_a_command_that_just_began_is_let_be(mate: Mate) -> None:
    leave = "(setsid sh -c 'sleep 0.1; echo on' &); exec sleep 1000"
    for _ in range(20):
        others = [mate.run(["true"]) for _ in range(4)]
        claim = mate.run(leave, grace=0)
        for other in others:
            mate.ended(other)
        mate.word(claim)
        mate.say(protocol.Kill(claim, 0))
        mate.ended(claim)
