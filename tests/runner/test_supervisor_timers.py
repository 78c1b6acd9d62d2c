"""Timeouts, kills and the deadline, also when the runner checks them late."""

import os
import select
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.runner.fake_agent import FakeAgent
from workron_runner import event_loop, protocol

_FOREVER = "echo $$; exec sleep 1000"


def _wait_until(moment: float) -> None:
    while (left := moment - event_loop.boottime()) > 0:
        select.select([], [], [], left)


def test_sigterm_is_sent_first_when_a_command_times_out(agent: FakeAgent) -> None:
    claim = agent.run("trap 'echo bye; exit 4' TERM; sleep 1000 & wait", timeout=0.2, grace=50)
    ended = agent.ended(claim)
    assert (ended.cause, ended.exit_code) == ("timeout", 4)
    assert agent.captured[claim] == b"bye\n"


def test_sigkill_follows_when_a_timed_out_command_ignores_sigterm(agent: FakeAgent) -> None:
    ended = agent.ended(agent.run("trap '' TERM; sleep 1000; sleep 1000", timeout=0.1))
    assert (ended.cause, ended.signal) == ("timeout", signal.SIGKILL)


def test_only_one_command_is_killed_when_two_are_running(
    agent: FakeAgent, is_running: Callable[[int], bool]
) -> None:
    one, other = agent.run(_FOREVER), agent.run(_FOREVER)
    agent.read_line(one)
    pid = int(agent.read_line(other))
    agent.send(protocol.Kill(one, 50))
    ended = agent.ended(one)
    assert (ended.cause, ended.signal) == ("kill", signal.SIGTERM)
    assert is_running(pid)
    agent.send(protocol.Kill(one, 0))


def test_grace_is_shortened_when_a_second_kill_is_quicker(agent: FakeAgent) -> None:
    claim = agent.run("trap '' TERM; echo on; sleep 1000; sleep 1000")
    agent.read_line(claim)
    agent.send(protocol.Kill(claim, 1000))
    agent.send(protocol.Kill(claim, 0))
    assert agent.ended(claim).signal == signal.SIGKILL


def test_only_a_command_that_outlives_the_deadline_survives_when_it_passes(
    agent: FakeAgent, is_running: Callable[[int], bool]
) -> None:
    survivor = agent.run(_FOREVER, outlives_deadline=True)
    pid = int(agent.read_line(survivor))
    claim = agent.run("trap '' TERM; echo on; sleep 1000; sleep 1000", grace=1000)
    agent.read_line(claim)
    agent.send(protocol.Deadline(event_loop.boottime() + 0.1))
    ended = agent.ended(claim)
    assert (ended.cause, ended.signal) == ("deadline", signal.SIGKILL)
    assert is_running(pid)


def test_start_is_refused_as_late_when_the_deadline_has_passed(agent: FakeAgent) -> None:
    agent.send(protocol.Deadline(event_loop.boottime()))
    refused = agent.refused(agent.run("true"))
    assert (refused.fault, refused.message) == ("late", "the deadline has passed")
    agent.send(protocol.Deadline(event_loop.boottime() + 1000))
    assert agent.ended(agent.run("true")).exit_code == 0


def test_deadline_is_applied_before_waiting_messages_when_the_runner_was_frozen(
    agent: FakeAgent,
) -> None:
    claim = agent.run(_FOREVER)
    agent.read_line(claim)
    deadline = event_loop.boottime() + 0.3
    agent.send(protocol.Deadline(deadline))
    agent.ended(agent.run("true"))
    agent.child.send_signal(signal.SIGSTOP)
    _wait_until(deadline)
    agent.send(protocol.Deadline(event_loop.boottime() + 1000))
    agent.child.send_signal(signal.SIGCONT)
    assert agent.ended(claim).cause == "deadline"


def _is_zombie(pid: int) -> bool:
    """Whether a process is dead and waits to be reaped by its parent."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123 - as short as it gets
        return stat.read().rpartition(")")[2].split()[0] == "Z"


@pytest.fixture
def frozen(agent: FakeAgent) -> Iterator[FakeAgent]:
    """A runner that a test may stop; it is continued at the end."""
    yield agent
    agent.child.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("fields", [{"timeout": 0.3}, {}], ids=["timeout", "deadline"])
def test_cause_is_exit_when_a_command_ended_before_a_late_check(
    frozen: FakeAgent, fields: dict[str, float]
) -> None:
    claim = frozen.run("echo $$; exec sleep 1000", **fields)
    pid = int(frozen.read_line(claim))
    frozen.send(protocol.Deadline(event_loop.boottime() + (1000 if fields else 0.3)))
    # The runner receives the deadline before it is stopped.
    frozen.ended(frozen.run("true"))
    frozen.child.send_signal(signal.SIGSTOP)
    os.kill(pid, signal.SIGUSR1)
    until = event_loop.boottime() + 0.4
    while event_loop.boottime() < until or not _is_zombie(pid):
        select.select([], [], [], 0.01)
    frozen.child.send_signal(signal.SIGCONT)
    ended = frozen.ended(claim)
    assert (ended.cause, ended.signal) == ("exit", signal.SIGUSR1)


def test_command_is_killed_when_its_kill_arrives_with_its_start(agent: FakeAgent) -> None:
    claim = agent.run("exec sleep 1000", grace=0)
    agent.send(protocol.Kill(claim, 0))
    assert agent.ended(claim).cause == "kill"


def test_grace_is_not_extended_when_a_second_kill_is_slower(agent: FakeAgent) -> None:
    claim = agent.run("trap '' TERM; echo on; sleep 1000; sleep 1000")
    agent.read_line(claim)
    agent.send(protocol.Kill(claim, 0.3))
    agent.send(protocol.Kill(claim, 1000))
    assert agent.ended(claim).signal == signal.SIGKILL
