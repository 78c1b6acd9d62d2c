"""The output that is captured of an attempt, and what is reported of its end."""

import pathlib
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runner.fake_agent import FakeAgent
from workron_runner import protocol
from workron_runner.attempt import CapturedOutput


def _capture(limit: int, *pieces: bytes) -> bytes:
    output = CapturedOutput(limit)
    for piece in pieces:
        output.add(piece)
    return output.value()[0]


@given(st.lists(st.binary(max_size=40)))
def test_output_is_captured_exactly_when_it_fits(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert _capture(len(whole), *pieces) == whole


@given(st.lists(st.binary(max_size=400)), st.integers(0, 300))
def test_captured_output_is_never_larger_than_its_limit(pieces: list[bytes], limit: int) -> None:
    assert len(_capture(limit, *pieces)) <= limit


def test_head_and_tail_are_captured_with_a_note_when_output_is_too_long() -> None:
    value = _capture(200, b"first", b"x" * 1000, b"last")
    assert value.startswith(b"firstxxx")
    assert value.endswith(b"xxxlast")
    assert b"\n[... of 1009 bytes in all, some are left out here ...]\n" in value
    assert len(value) == 200


@pytest.mark.parametrize("limit", [0, 1, 7])
def test_only_the_tail_is_captured_when_the_limit_is_tiny(limit: int) -> None:
    assert _capture(limit, b"0123456789") == b"0123456789"[10 - limit :]


@pytest.mark.parametrize("limit", [0, 1, 1000])
def test_captured_output_needs_a_few_times_its_limit_when_a_command_writes_much(limit: int) -> None:
    output = CapturedOutput(limit)
    for _ in range(10_000):
        output.add(b"x" * 1000)
    assert len(output._head) + len(output._tail) <= 3 * limit + 1000


def test_ended_reports_code_and_durations_when_the_command_exits(agent: FakeAgent) -> None:
    ended = agent.ended(agent.run("exit 3"))
    assert (ended.cause, ended.exit_code, ended.signal) == ("exit", 3, None)
    assert 0 < ended.seconds < 60
    assert 0 < ended.start_seconds < 60
    assert ended.result_error is None


def test_ended_reports_the_signal_when_one_killed_the_command(agent: FakeAgent) -> None:
    ended = agent.ended(agent.run("kill -9 $$"))
    assert (ended.exit_code, ended.signal) == (None, signal.SIGKILL)


def test_peak_memory_is_that_of_the_largest_process_when_a_command_has_several(
    agent: FakeAgent,
) -> None:
    small = agent.ended(agent.run("true")).peak_bytes
    large = agent.ended(agent.run("head -c 60000000 /dev/zero | tail -c 60000000 >/dev/null"))
    assert 50_000_000 < large.peak_bytes < 200_000_000
    assert small < 50_000_000


def test_output_stays_in_the_pipe_when_the_credit_is_used_up(agent: FakeAgent) -> None:
    claim = agent.run("yes", window_bytes=100_000)
    agent.receive_until(lambda: len(agent.output[claim]) >= 100_000)
    # No more output comes, although another command runs to its end meanwhile.
    agent.ended(agent.run("true"))
    got = len(agent.output[claim])
    assert got < 100_000 + 64 * 1024
    agent.send(protocol.Credit(claim, 200_000))
    agent.receive_until(lambda: len(agent.output[claim]) >= got + 100_000)


def test_output_is_captured_without_credit_when_it_is_not_streamed(agent: FakeAgent) -> None:
    claim = agent.run("yes | head -c 3000000; printf end", window_bytes=0)
    ended = agent.ended(claim)
    assert agent.output[claim] == b""
    assert agent.captured[claim].endswith(b"y\nend")
    assert len(agent.captured[claim]) == 1000
    gap = agent.captured[claim].index(b"\n[..."), agent.captured[claim].index(b"...]\n") + 5
    assert ended.omitted_bytes == 3_000_003 - 1000 + gap[1] - gap[0]


def test_memory_of_the_runner_does_not_grow_when_a_command_writes_much(agent: FakeAgent) -> None:
    agent.ended(agent.run("true"))
    before = _peak(agent.child.pid)
    agent.ended(agent.run("head -c 300000000 /dev/zero", window_bytes=0))
    slow = agent.run("head -c 300000000 /dev/zero; echo", window_bytes=1000)
    agent.receive_until(lambda: len(agent.output[slow]) >= 1000)
    agent.ended(agent.run("true"))
    assert _peak(agent.child.pid) - before < 4_000_000


def _peak(pid: int) -> int:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
