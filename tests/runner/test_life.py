"""When a runner ends a command, and when it ends itself."""

import os
import pathlib
import select
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.runner.mate import HOME, Mate, environment
from workron_runner import event_loop, protocol

_FOREVER = "echo $$; exec sleep 1000"


def _wait_until(moment: float) -> None:
    while (left := moment - event_loop.boottime()) > 0:
        select.select([], [], [], left)


def _wait_for(is_so: Callable[[], bool]) -> None:
    while not is_so():
        select.select([], [], [], 0.005)


def test_command_that_is_late_gets_a_polite_signal_first(mate: Mate) -> None:
    claim = mate.run("trap 'echo bye; exit 4' TERM; sleep 1000 & wait", timeout=0.2, grace=50)
    ended = mate.ended(claim)
    assert (ended.cause, ended.exit_code) == ("timeout", 4)
    assert mate.kept[claim] == b"bye\n"


def test_command_that_is_late_and_ignores_it_is_killed(mate: Mate) -> None:
    ended = mate.ended(mate.run("trap '' TERM; sleep 1000; sleep 1000", timeout=0.1))
    assert (ended.cause, ended.signal) == ("timeout", signal.SIGKILL)


def test_kill_ends_one_command_and_no_other(mate: Mate, lives: Callable[[int], bool]) -> None:
    one, other = mate.run(_FOREVER), mate.run(_FOREVER)
    mate.word(one)
    pid = int(mate.word(other))
    mate.say(protocol.Kill(one, 50))
    ended = mate.ended(one)
    assert (ended.cause, ended.signal) == ("kill", signal.SIGTERM)
    assert lives(pid)
    mate.say(protocol.Kill(one, 0))


def test_second_kill_may_be_quicker_than_the_first(mate: Mate) -> None:
    claim = mate.run("trap '' TERM; echo on; sleep 1000; sleep 1000")
    mate.word(claim)
    mate.say(protocol.Kill(claim, 1000))
    mate.say(protocol.Kill(claim, 0))
    assert mate.ended(claim).signal == signal.SIGKILL


def test_everything_but_what_outlives_it_dies_at_the_deadline(
    mate: Mate, lives: Callable[[int], bool]
) -> None:
    tough = mate.run(_FOREVER, outlives_deadline=True)
    pid = int(mate.word(tough))
    claim = mate.run("trap '' TERM; echo on; sleep 1000; sleep 1000", grace=1000)
    mate.word(claim)
    mate.say(protocol.Deadline(event_loop.boottime() + 0.1))
    ended = mate.ended(claim)
    assert (ended.cause, ended.signal) == ("deadline", signal.SIGKILL)
    assert lives(pid)


def test_nothing_starts_after_the_deadline_until_there_is_a_new_one(mate: Mate) -> None:
    mate.say(protocol.Deadline(event_loop.boottime()))
    refused = mate.refused(mate.run("true"))
    assert (refused.fault, refused.message) == ("late", "the deadline has passed")
    mate.say(protocol.Deadline(event_loop.boottime() + 1000))
    assert mate.ended(mate.run("true")).exit_code == 0


def test_after_a_freeze_the_deadline_comes_before_what_waits_in_the_socket(mate: Mate) -> None:
    claim = mate.run(_FOREVER)
    mate.word(claim)
    deadline = event_loop.boottime() + 0.3
    mate.say(protocol.Deadline(deadline))
    mate.ended(mate.run("true"))
    mate.child.send_signal(signal.SIGSTOP)
    _wait_until(deadline)
    mate.say(protocol.Deadline(event_loop.boottime() + 1000))
    mate.child.send_signal(signal.SIGCONT)
    assert mate.ended(claim).cause == "deadline"


def test_goodbye_ends_everything_and_tells_of_it_first(
    mate: Mate, lives: Callable[[int], bool]
) -> None:
    claim = mate.run(_FOREVER, grace=1000)
    pid = int(mate.word(claim))
    mate.say(protocol.Shutdown())
    assert mate.farewell() == protocol.Shutdown(None)
    assert mate.ended(claim).cause == "kill"
    assert not lives(pid)
    assert not mate.folder.exists()


def test_end_of_the_connection_ends_everything(mate: Mate, lives: Callable[[int], bool]) -> None:
    pid = int(mate.word(mate.run("trap '' TERM; setsid sleep 1000 & echo $!; sleep 1000")))
    mate.link.close()
    mate.child.wait()
    assert not lives(pid)
    assert not mate.folder.exists()


def test_signal_to_the_runner_ends_everything(mate: Mate, lives: Callable[[int], bool]) -> None:
    pid = int(mate.word(mate.run(_FOREVER)))
    mate.child.terminate()
    assert mate.farewell().reason == "the runner was asked to end by a signal"
    assert not lives(pid)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (
            protocol.Ended("0" * 32, "exit", 0, None, 0, 0, 0, 0, None),
            "a runner takes no Ended",
        ),
        (protocol.Hello(1, "0" * 32, 0), "cannot create"),
    ],
)
def test_agent_that_does_not_speak_as_agreed_is_told_why(
    mate: Mate, message: protocol.Message, why: str
) -> None:
    if isinstance(message, protocol.Hello):
        message = protocol.Hello(1, mate.boot.hex, 0)
    pid = mate.run(_FOREVER)
    mate.word(pid)
    mate.say(message)
    assert why in (mate.farewell().reason or "")


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (protocol.Hello(2, "0" * 32, 0), "the agent speaks version 2, this runner 1"),
        (protocol.Hello(1, "zz", 0), "badly formed"),
        (protocol.Deadline(1), "Deadline came before Hello"),
    ],
)
def test_connection_that_begins_wrong_is_not_kept(
    tmp_path: pathlib.Path, first: protocol.Message, why: str
) -> None:
    mate = Mate(tmp_path)
    mate.say(first)
    assert why in (mate.farewell().reason or "")
    mate.close()


def test_runner_is_closed_to_its_commands_and_adopts_their_orphans(tmp_path: pathlib.Path) -> None:
    ask = (
        "from workron_runner import sandbox; import ctypes; sandbox.prepare_process(); "
        "c = ctypes.CDLL(None); n = ctypes.c_int(); c.prctl(37, ctypes.byref(n), 0, 0, 0); "
        "print(c.prctl(3, 0, 0, 0, 0), n.value)"
    )
    asked = subprocess.run(
        [sys.executable, "-c", ask], env=environment(tmp_path), stdout=subprocess.PIPE, check=True
    )
    assert asked.stdout == b"0 1\n"


_AGENT = """
import asyncio, sys, uuid
from datetime import timedelta
from workron.core.ids import ClaimId
from workron_worker.executor import CommandTask
from workron_worker.runner_client import RunnerExecutor, run_task

def say(chunk, done):
    print(chunk.decode(), executor._runner.pid, flush=True)
    done(len(chunk))

async def main():
    global executor
    executor = RunnerExecutor(grace=timedelta(minutes=1), boot=uuid.uuid4())
    command = "trap '' TERM; setsid sleep 1000 & echo $! $$; sleep 1000; sleep 1000"
    await run_task(executor, CommandTask(ClaimId(uuid.uuid4()), command, {}, 1000), say)

asyncio.run(main())
"""


def test_kill_of_the_agent_ends_runner_and_commands_and_leaves_no_folder(
    tmp_path: pathlib.Path, lives: Callable[[int], bool]
) -> None:
    variables = environment(tmp_path) | {"PYTHONPATH": f"{HOME.parent}:{HOME}"}
    with subprocess.Popen(
        [sys.executable, "-c", _AGENT], env=variables, stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdout is not None
        pids = [int(word) for _ in range(2) for word in agent.stdout.readline().split()]
        assert [lives(pid) for pid in pids] == [True, True, True]
        watched = [os.pidfd_open(pid) for pid in pids]
        agent.kill()
        for one in watched:
            select.select([one], [], [])
            os.close(one)
    assert list(tmp_path.glob("workron-*")) == []
