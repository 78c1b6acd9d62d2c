"""The null runner speaks the runner's protocol, although it starts no command."""

import json
import pathlib
import struct
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from bench.ours.null_worker import RUNNER
from tests.runner.fake_agent import FakeAgent, environment
from workron_runner import event_loop, protocol
from workron_runner.protocol import FrameKind


@pytest.fixture
def new_agent(tmp_path: pathlib.Path) -> Iterator[FakeAgent]:
    agent = FakeAgent(tmp_path, command=RUNNER)
    yield agent
    agent.close()
    assert not agent.folder.exists()


@pytest.fixture
def agent(new_agent: FakeAgent) -> FakeAgent:
    new_agent.say_hello()
    assert new_agent.folder.is_dir()
    return new_agent


def _start() -> protocol.Start:
    claim = uuid.uuid4().hex
    return protocol.Start(claim, ["true"], {}, "{}", 1, 0, None, None, 0, outlives_deadline=False)


def test_every_start_is_answered_with_a_successful_end(agent: FakeAgent) -> None:
    claims = [agent.run("exit 3") for _ in range(300)]
    ends = [agent.ended(claim) for claim in claims]
    assert {(one.cause, one.exit_code, one.signal) for one in ends} == {("exit", 0, None)}
    assert [getattr(one, "claim", "") for one in agent.messages[1:]] == claims


def test_start_is_accepted_when_its_fields_are_in_another_order(agent: FakeAgent) -> None:
    start = _start()
    fields = {one: getattr(start, one) for one in reversed(start.__slots__)}
    agent.connection.send(
        protocol.encode_frame(FrameKind.START, json.dumps(fields, indent=1).encode())
    )
    assert agent.ended(start.claim).exit_code == 0


def test_start_is_answered_when_it_arrives_in_pieces(agent: FakeAgent) -> None:
    starts = [_start(), _start()]
    frames = b"".join(map(protocol.encode, starts))
    for at in range(0, len(frames), 100):
        agent.connection.send(frames[at : at + 100])
    assert [agent.ended(one.claim).exit_code for one in starts] == [0, 0]


def test_kill_and_credit_are_ignored_when_the_command_has_ended(agent: FakeAgent) -> None:
    claim = agent.run("true")
    agent.send(protocol.Kill(claim, 0))
    agent.send(protocol.Credit(claim, 10))
    later = agent.run("true")
    assert [agent.ended(claim).exit_code, agent.ended(later).exit_code] == [0, 0]
    assert len(agent.messages) == 3


def test_start_is_refused_as_late_when_the_deadline_has_passed(agent: FakeAgent) -> None:
    agent.send(protocol.Deadline(event_loop.boottime() - 1))
    assert agent.refused(agent.run("true")).fault == "late"
    assert agent.ended(agent.run("true", outlives_deadline=True)).exit_code == 0
    agent.send(protocol.Deadline(event_loop.boottime() + 1000))
    assert agent.ended(agent.run("true")).exit_code == 0


def test_shutdown_is_answered_when_the_folder_is_removed(agent: FakeAgent) -> None:
    claim = agent.run("true")
    agent.send(protocol.Shutdown())
    assert agent.wait_for_shutdown().reason is None
    assert agent.ended(claim).exit_code == 0
    assert not agent.folder.exists()


def test_null_runner_exits_when_the_agent_disconnects(agent: FakeAgent) -> None:
    agent.connection.close()
    assert agent.child.wait() == 0


def test_shutdown_names_the_reason_when_a_message_is_unknown(agent: FakeAgent) -> None:
    agent.connection.send(struct.pack(">IB", 2, 99) + b"{}")
    assert "kind 99" in str(agent.wait_for_shutdown().reason)


def test_shutdown_names_the_reason_when_hello_is_missing(new_agent: FakeAgent) -> None:
    new_agent.run("true")
    assert new_agent.wait_for_shutdown().reason == "Start came before Hello"


def test_shutdown_names_the_reason_when_the_version_differs(new_agent: FakeAgent) -> None:
    new_agent.send(protocol.Hello(2, new_agent.boot.hex, event_loop.boottime()))
    assert "version 2, not 1" in str(new_agent.wait_for_shutdown().reason)


def test_isolate_is_rejected_because_no_command_runs(tmp_path: pathlib.Path) -> None:
    command = [*RUNNER, "--descriptor", "0", "--isolate"]
    result = subprocess.run(command, env=environment(tmp_path), capture_output=True, check=False)
    assert (result.returncode, b"--isolate" in result.stderr) == (2, True)
