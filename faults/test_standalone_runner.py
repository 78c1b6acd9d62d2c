"""An agent and a standalone runner: either is killed, and either starts late."""

import os
import signal
import socket

from faults import processes
from faults.harness import FaultHarness
from faults.programs import Runner, Worker
from workron_runner import event_loop, protocol

_POD = {"WORKRON_POD_UID": "0b5fbd2e-0f39-4b8c-8bd4-0d1f6a0d2a51"}


def _await_event(harness: FaultHarness, worker: Worker, event: str, times: int = 1) -> None:
    quoted = f'"event":"{event}"'
    harness.until(lambda: worker.log.read_text().count(quoted) >= times, f"{event} is logged")


def _kill(one: Runner) -> None:
    os.kill(one.pid, signal.SIGKILL)
    one.wait()


def test_next_runner_runs_the_jobs_when_a_runner_is_killed(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work={"command": "test $WORKRON_ATTEMPT = 2 || live /no", "count": 3})
    runner = harness.runner()
    worker = harness.worker("--runner", runner.path, "--slots", 3)
    harness.until(lambda: len(harness.executions()) == 3, "all have begun")
    _kill(runner)
    for one in harness.executions():
        harness.await_death(one)
    _await_event(harness, worker, "command lost", 3)
    harness.submit("late", late=":")
    claims = worker.proxy.answered["claim"]
    harness.await_heartbeats(worker, 2)
    assert worker.proxy.answered["claim"] == claims, "nothing is claimed without a runner"
    harness.runner(after=runner)
    harness.await_end()
    assert set(harness.rows("state", "failures", "losses")) == {("Succeeded", 0, 0)}
    harness.assert_nothing_found()


def test_next_boot_takes_over_at_once_when_the_agent_is_killed(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work="test $WORKRON_ATTEMPT = 2 || live /no")
    runner = harness.runner()
    options = ("--runner", runner.path)
    killed = harness.worker(*options, lease_seconds=1000, environment=_POD)
    first = harness.await_execution()
    killed.kill()
    harness.await_death(first)
    assert runner.wait() == 0
    assert list(runner.folder.iterdir()) == []
    again = harness.worker(*options, lease_seconds=1000, environment=_POD, after=killed)
    _await_event(harness, again, "waiting for runner")
    assert not harness.value("SELECT count(*) FROM workron.worker WHERE heartbeats = 0"), (
        "a worker without a runner does not report older boots"
    )
    harness.runner(after=runner)
    harness.await_end()
    assert harness.states() == {"work": ("Succeeded", None, 2, 0, 1)}
    harness.assert_nothing_found()


def test_next_runner_cleans_up_when_agent_and_runner_are_killed_at_once(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work="test $WORKRON_ATTEMPT = 2 || live /no")
    runner = harness.runner()
    killed = harness.worker("--runner", runner.path)
    first = harness.await_execution()
    killed.stop(killed.pid, runner.pid)
    _kill(runner)
    killed.kill()
    killed.wait()
    assert processes.is_alive(first.pid)
    harness.worker("--runner", runner.path, after=killed)
    harness.runner(after=runner)
    harness.await_end()
    assert not processes.is_alive(first.pid)
    assert harness.states()["work"][:4] == ("Succeeded", None, 2, 0)
    harness.assert_nothing_found()


def test_agent_waits_when_a_killed_runner_left_its_socket(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    runner = harness.runner()
    harness.until(runner.path.exists, "it listens")
    _kill(runner)
    assert runner.path.exists()
    harness.submit("flow", work=":")
    worker = harness.worker("--runner", runner.path)
    _await_event(harness, worker, "waiting for runner")
    harness.runner(after=runner)
    harness.await_end()
    assert harness.states() == {"work": ("Succeeded", None, 1, 0, 0)}


def test_agent_is_accepted_when_a_silent_client_connected_first(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work=":")
    runner = harness.runner()
    harness.until(runner.path.exists, "it listens")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(runner.path))
        harness.worker("--runner", runner.path)
        harness.await_end()
        assert silent.recv(1) == b"", "it is disconnected"


def test_agent_waits_for_the_next_runner_when_another_agent_uses_this_one(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work=":")
    runner = harness.runner()
    harness.until(runner.path.exists, "it listens")
    with socket.socket(socket.AF_UNIX) as other:
        other.connect(str(runner.path))
        other.sendall(protocol.encode(protocol.Hello(1, "0" * 32, event_loop.boottime())))
        assert other.recv(1), "it is accepted"
        worker = harness.worker("--runner", runner.path)
        _await_event(harness, worker, "waiting for runner")
        assert not harness.states()
    assert runner.wait() == 0
    harness.runner(after=runner)
    harness.await_end()
    assert harness.states() == {"work": ("Succeeded", None, 1, 0, 0)}
