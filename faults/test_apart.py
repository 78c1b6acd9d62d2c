"""An agent and a runner that nobody started for it: either is killed, and either comes late."""

import os
import signal
import socket

from faults import processes
from faults.crew import Runner, Worker
from faults.house import House
from workron_runner import event_loop, protocol

_POD = {"WORKRON_POD_UID": "0b5fbd2e-0f39-4b8c-8bd4-0d1f6a0d2a51"}


def _said(house: House, worker: Worker, event: str, times: int = 1) -> None:
    quoted = f'"event":"{event}"'
    house.until(lambda: worker.log.read_text().count(quoted) >= times, f"{event} is said")


def _kill(one: Runner) -> None:
    os.kill(one.pid, signal.SIGKILL)
    one.wait()


def test_runner_that_is_killed_loses_its_jobs_together_and_the_next_one_runs_them(
    house: House,
) -> None:
    house.maintainer()
    house.submit("flow", work={"command": "test $WORKRON_ATTEMPT = 2 || live /no", "count": 3})
    runner = house.runner()
    worker = house.worker("--runner", runner.path, "--slots", 3)
    house.until(lambda: len(house.executions()) == 3, "all have begun")
    _kill(runner)
    for one in house.executions():
        house.await_death(one)
    _said(house, worker, "command lost", 3)
    house.submit("late", late=":")
    claims = worker.proxy.answered["claim"]
    house.await_beats(worker, 2)
    assert worker.proxy.answered["claim"] == claims, "nothing is claimed without a runner"
    house.runner(after=runner)
    house.await_end()
    assert set(house.rows("state", "failures", "losses")) == {("Succeeded", 0, 0)}
    findings = house.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_agent_that_is_killed_has_its_runner_end_all_and_the_next_boot_takes_over_at_once(
    house: House,
) -> None:
    house.maintainer()
    house.submit("flow", work="test $WORKRON_ATTEMPT = 2 || live /no")
    runner = house.runner()
    options = ("--runner", runner.path)
    hurt = house.worker(*options, lease_seconds=1000, environment=_POD)
    first = house.await_execution()
    hurt.kill()
    house.await_death(first)
    assert runner.wait() == 0
    assert list(runner.folder.iterdir()) == []
    again = house.worker(*options, lease_seconds=1000, environment=_POD, after=hurt)
    _said(house, again, "waiting for runner")
    assert not house.value("SELECT count(*) FROM workron.worker WHERE heartbeats = 0"), (
        "who has no runner yet says nothing of older boots"
    )
    house.runner(after=runner)
    house.await_end()
    assert house.states() == {"work": ("Succeeded", None, 2, 0, 1)}
    findings = house.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_agent_and_runner_are_killed_at_once_and_the_next_runner_ends_what_they_left(
    house: House,
) -> None:
    house.maintainer()
    house.submit("flow", work="test $WORKRON_ATTEMPT = 2 || live /no")
    runner = house.runner()
    hurt = house.worker("--runner", runner.path)
    first = house.await_execution()
    hurt.stop(hurt.pid, runner.pid)
    _kill(runner)
    hurt.kill()
    hurt.wait()
    assert processes.is_alive(first.pid)
    house.worker("--runner", runner.path, after=hurt)
    house.runner(after=runner)
    house.await_end()
    assert not processes.is_alive(first.pid)
    assert house.states()["work"][:4] == ("Succeeded", None, 2, 0)
    findings = house.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_runner_that_was_killed_as_it_waited_leaves_a_path_that_fools_nobody(house: House) -> None:
    house.maintainer()
    runner = house.runner()
    house.until(runner.path.exists, "it waits")
    _kill(runner)
    assert runner.path.exists()
    house.submit("flow", work=":")
    worker = house.worker("--runner", runner.path)
    _said(house, worker, "waiting for runner")
    house.runner(after=runner)
    house.await_end()
    assert house.states() == {"work": ("Succeeded", None, 1, 0, 0)}


def test_agent_has_the_runner_though_others_who_say_nothing_came_first(house: House) -> None:
    house.maintainer()
    house.submit("flow", work=":")
    runner = house.runner()
    house.until(runner.path.exists, "it waits")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(runner.path))
        house.worker("--runner", runner.path)
        house.await_end()
        assert silent.recv(1) == b"", "it is shown out"


def test_agent_waits_for_the_next_runner_while_another_has_this_one(house: House) -> None:
    house.maintainer()
    house.submit("flow", work=":")
    runner = house.runner()
    house.until(runner.path.exists, "it waits")
    with socket.socket(socket.AF_UNIX) as other:
        other.connect(str(runner.path))
        other.sendall(protocol.encode(protocol.Hello(1, "0" * 32, event_loop.boottime())))
        assert other.recv(1), "it is taken"
        worker = house.worker("--runner", runner.path)
        _said(house, worker, "waiting for runner")
        assert not house.states()
    assert runner.wait() == 0
    house.runner(after=runner)
    house.await_end()
    assert house.states() == {"work": ("Succeeded", None, 1, 0, 0)}
