"""The null runner is a peer of the protocol, though it starts nothing."""

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
def stranger(tmp_path: pathlib.Path) -> Iterator[FakeAgent]:
    one = FakeAgent(tmp_path, command=RUNNER)
    yield one
    one.close()
    assert not one.folder.exists()


@pytest.fixture
def agent(stranger: FakeAgent) -> FakeAgent:
    stranger.say_hello()
    assert stranger.folder.is_dir()
    return stranger


def _order() -> protocol.Start:
    claim = uuid.uuid4().hex
    return protocol.Start(claim, ["true"], {}, "{}", 1, 0, None, None, 0, outlives_deadline=False)


def test_every_order_has_ended_as_soon_as_it_is_given(agent: FakeAgent) -> None:
    claims = [agent.run("exit 3") for _ in range(300)]
    ends = [agent.ended(claim) for claim in claims]
    assert {(one.cause, one.exit_code, one.signal) for one in ends} == {("exit", 0, None)}
    assert [getattr(one, "claim", "") for one in agent.messages[1:]] == claims


def test_order_is_the_same_however_it_is_written(agent: FakeAgent) -> None:
    order = _order()
    fields = {one: getattr(order, one) for one in reversed(order.__slots__)}
    agent.connection.send(
        protocol.encode_frame(FrameKind.START, json.dumps(fields, indent=1).encode())
    )
    assert agent.ended(order.claim).exit_code == 0


def test_order_that_comes_in_pieces_is_answered_when_it_is_whole(agent: FakeAgent) -> None:
    orders = [_order(), _order()]
    frames = b"".join(map(protocol.encode, orders))
    for start in range(0, len(frames), 100):
        agent.connection.send(frames[start : start + 100])
    assert [agent.ended(one.claim).exit_code for one in orders] == [0, 0]


def test_what_concerns_an_ended_command_is_let_be(agent: FakeAgent) -> None:
    claim = agent.run("true")
    agent.send(protocol.Kill(claim, 0))
    agent.send(protocol.Credit(claim, 10))
    later = agent.run("true")
    assert [agent.ended(claim).exit_code, agent.ended(later).exit_code] == [0, 0]
    assert len(agent.messages) == 3


def test_order_after_the_deadline_is_refused_until_there_is_a_later_one(agent: FakeAgent) -> None:
    agent.send(protocol.Deadline(event_loop.boottime() - 1))
    assert agent.refused(agent.run("true")).fault == "late"
    assert agent.ended(agent.run("true", outlives_deadline=True)).exit_code == 0
    agent.send(protocol.Deadline(event_loop.boottime() + 1000))
    assert agent.ended(agent.run("true")).exit_code == 0


def test_goodbye_is_answered_when_the_folder_is_gone(agent: FakeAgent) -> None:
    claim = agent.run("true")
    agent.send(protocol.Shutdown())
    assert agent.wait_for_shutdown().reason is None
    assert agent.ended(claim).exit_code == 0
    assert not agent.folder.exists()


def test_end_of_the_connection_is_its_end(agent: FakeAgent) -> None:
    agent.connection.close()
    assert agent.child.wait() == 0


def test_it_says_what_it_does_not_understand(agent: FakeAgent) -> None:
    agent.connection.send(struct.pack(">IB", 2, 99) + b"{}")
    assert "kind 99" in str(agent.wait_for_shutdown().reason)


def test_agent_has_to_greet_it_first(stranger: FakeAgent) -> None:
    stranger.run("true")
    assert stranger.wait_for_shutdown().reason == "Start came before Hello"


def test_agent_of_another_version_is_refused(stranger: FakeAgent) -> None:
    stranger.send(protocol.Hello(2, stranger.boot.hex, event_loop.boottime()))
    assert "version 2, not 1" in str(stranger.wait_for_shutdown().reason)


def test_option_that_it_cannot_keep_is_refused(tmp_path: pathlib.Path) -> None:
    command = [*RUNNER, "--descriptor", "0", "--isolate"]
    told = subprocess.run(command, env=environment(tmp_path), capture_output=True, check=False)
    assert (told.returncode, b"--isolate" in told.stderr) == (2, True)
