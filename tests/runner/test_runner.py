"""How a runner ends its commands and itself."""

import os
import pathlib
import select
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.runner.fake_agent import HOME, FakeAgent, environment
from workron_runner import protocol

_FOREVER = "echo $$; exec sleep 1000"
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


def test_commands_are_killed_and_reported_when_the_agent_sends_shutdown(
    agent: FakeAgent, is_running: Callable[[int], bool]
) -> None:
    claim = agent.run(_FOREVER, grace=1000)
    pid = int(agent.read_line(claim))
    agent.send(protocol.Shutdown())
    assert agent.wait_for_shutdown() == protocol.Shutdown(None)
    assert agent.ended(claim).cause == "kill"
    assert not is_running(pid)
    assert not agent.folder.exists()


def test_commands_are_killed_when_the_agent_disconnects(
    agent: FakeAgent, is_running: Callable[[int], bool]
) -> None:
    pid = int(agent.read_line(agent.run("trap '' TERM; setsid sleep 1000 & echo $!; sleep 1000")))
    agent.connection.close()
    agent.child.wait()
    assert not is_running(pid)
    assert not agent.folder.exists()


def test_commands_are_killed_when_the_runner_gets_sigterm(
    agent: FakeAgent, is_running: Callable[[int], bool]
) -> None:
    pid = int(agent.read_line(agent.run(_FOREVER)))
    agent.child.terminate()
    assert agent.wait_for_shutdown().reason == "the runner was asked to end by a signal"
    assert not is_running(pid)


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
def test_runner_exits_with_a_reason_when_a_message_breaks_the_protocol(
    agent: FakeAgent, message: protocol.Message, why: str
) -> None:
    if isinstance(message, protocol.Hello):
        message = protocol.Hello(1, agent.boot.hex, 0)
    pid = agent.run(_FOREVER)
    agent.read_line(pid)
    agent.send(message)
    assert why in (agent.wait_for_shutdown().reason or "")


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (protocol.Hello(2, "0" * 32, 0), "the agent speaks version 2, this runner 1"),
        (protocol.Hello(1, "zz", 0), "badly formed"),
        (protocol.Deadline(1), "Deadline came before Hello"),
    ],
)
def test_runner_exits_with_a_reason_when_the_first_message_is_wrong(
    tmp_path: pathlib.Path, first: protocol.Message, why: str
) -> None:
    agent = FakeAgent(tmp_path)
    agent.send(first)
    assert why in (agent.wait_for_shutdown().reason or "")
    agent.close()


def test_runner_and_commands_end_without_leftovers_when_the_agent_is_killed(
    tmp_path: pathlib.Path, is_running: Callable[[int], bool]
) -> None:
    variables = environment(tmp_path) | {"PYTHONPATH": f"{HOME.parent}:{HOME}"}
    with subprocess.Popen(
        [sys.executable, "-c", _AGENT], env=variables, stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdout is not None
        pids = [int(word) for _ in range(2) for word in agent.stdout.readline().split()]
        assert [is_running(pid) for pid in pids] == [True, True, True]
        watched = [os.pidfd_open(pid) for pid in pids]
        agent.kill()
        for one in watched:
            select.select([one], [], [])
            os.close(one)
    assert list(tmp_path.glob("workron-*")) == []


def test_pending_starts_are_killed_first_when_the_agent_sends_shutdown(agent: FakeAgent) -> None:
    claims = [agent.run("exec sleep 1000") for _ in range(5)]
    agent.send(protocol.Shutdown())
    agent.wait_for_shutdown()
    assert [agent.ended(claim).cause for claim in claims] == ["kill"] * 5


@pytest.mark.parametrize("options", [(), ("--try-isolate",)])
def test_no_descriptor_is_left_when_commands_have_ended_or_were_refused(
    tmp_path: pathlib.Path, options: tuple[str, ...]
) -> None:
    with FakeAgent(tmp_path, *options) as agent:
        descriptors = pathlib.Path(f"/proc/{agent.child.pid}/fd")
        agent.ended(agent.run("true"))
        before = len(list(descriptors.iterdir()))
        for _ in range(10):
            agent.ended(agent.run("true"))
            agent.refused(agent.run(["/no/such/program"]))
        # Not exact: the runner opens files of /proc at any time.
        assert len(list(descriptors.iterdir())) < before + 10
