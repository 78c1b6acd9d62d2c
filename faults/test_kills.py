"""`kill -9` of an agent, a runner and a job, at every named point of a claim and of a completion.

Two jobs, one after the other, on a worker that is hit; another worker is there for what is left.
"""

import os
import signal
from collections.abc import Callable

import pytest

from faults import processes
from faults.harness import FaultHarness
from faults.programs import Worker
from faults.proxy import Line, Moment, Proxy

_POINTS = [
    pytest.param(moment, verb, id=f"{moment.name.lower()} the {verb}'s commit")
    for verb in ("claim", "complete")
    for moment in (Moment.BEFORE, Moment.AFTER)
]
_ROUNDS = 3
_FLOW = {"work": ":", "after": {"command": ":", "dependsOn": [{"name": "work"}]}}
_ATTEMPTS_OF_A_KILLED_AGENT = {
    (Moment.BEFORE, "claim"): {"work": 1, "after": 1},
    (Moment.AFTER, "claim"): {"work": 2, "after": 1},
    (Moment.BEFORE, "complete"): {"work": 2, "after": 1},
    # The same call that completes the one has claimed the other.
    (Moment.AFTER, "complete"): {"work": 1, "after": 2},
}


def _hit(
    harness: FaultHarness, moment: Moment, verb: str, blow: Callable[[Worker, Line], None]
) -> tuple[Worker, Proxy]:
    """Start a worker that is hit at that point, and wait until it is."""
    hurt: list[Worker] = []
    proxy = harness.proxy()
    reached = proxy.at(moment, verb, lambda line: blow(hurt[0], line))
    hurt.append(harness.worker(proxy=proxy))
    assert reached.wait(30), harness.told()
    return hurt[0], proxy


def _kill_agent(worker: Worker, line: Line) -> None:
    worker.kill()
    line.cut()


def _kill_runner(worker: Worker, _: Line) -> None:
    os.kill(worker.await_runner(), signal.SIGKILL)


def _attempts(harness: FaultHarness) -> dict[str, int]:
    return {name: attempts for name, (_, _, attempts, _, _) in harness.states().items()}


@pytest.mark.parametrize(("moment", "verb"), _POINTS)
def test_agent_is_killed_and_every_job_ends_once(
    harness: FaultHarness, moment: Moment, verb: str
) -> None:
    harness.maintainer()
    harness.submit("flow", **_FLOW)
    hurt, _ = _hit(harness, moment, verb, _kill_agent)
    hurt.wait()
    harness.worker()
    harness.await_end()
    assert _attempts(harness) == _ATTEMPTS_OF_A_KILLED_AGENT[moment, verb]
    findings = harness.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


@pytest.mark.parametrize(("moment", "verb"), _POINTS)
def test_runner_is_killed_and_its_agent_has_every_job_end_once(
    harness: FaultHarness, moment: Moment, verb: str
) -> None:
    harness.maintainer()
    harness.submit("flow", **_FLOW)
    hurt, _ = _hit(harness, moment, verb, _kill_runner)
    harness.await_end()
    assert {state for state, *_ in harness.states().values()} == {"Succeeded"}
    assert hurt.is_alive
    findings = harness.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_agent_is_killed_in_the_middle_of_a_run_and_takes_its_command_with_it(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work=f"live {harness.folder}/go")
    hurt = harness.worker()
    first = harness.await_execution()
    runner = hurt.await_runner()
    hurt.kill()
    harness.await_death(first)
    harness.until(lambda: not processes.is_alive(runner), "its runner has gone, too", seconds=5)
    (harness.folder / "go").touch()
    harness.worker()
    harness.await_end()
    # A single job on a lost worker is charged with the loss.
    assert harness.states() == {"work": ("Succeeded", None, 2, 0, 1)}
    findings = harness.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_runner_is_killed_in_the_middle_of_a_run_and_takes_its_command_with_it(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work=f"test $WORKRON_ATTEMPT -gt {_ROUNDS} || live {harness.folder}/go")
    hurt = harness.worker()
    sockets = set()
    for attempt in range(1, _ROUNDS + 1):
        running = harness.await_execution(attempt)
        sockets.add(processes.open_sockets(hurt.pid))
        os.kill(hurt.await_runner(), signal.SIGKILL)
        harness.await_death(running)
    harness.await_end()
    # It fell alone each time, and so is charged with it.
    assert harness.states()["work"] == ("Succeeded", None, _ROUNDS + 1, 0, _ROUNDS)
    assert hurt.is_alive
    assert len(sockets) == 1, "sockets to runners that are gone are kept open"
    findings = harness.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_agent_and_runner_are_killed_at_once_and_the_next_worker_ends_what_they_left(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work=f"test $WORKRON_ATTEMPT -gt 1 || live {harness.folder}/go")
    hurt = harness.worker()
    first = harness.await_execution()
    runner = hurt.await_runner()
    # Stopped first, so that neither sees the other go.
    hurt.stop(hurt.pid, runner)
    os.kill(runner, signal.SIGKILL)
    hurt.kill()
    hurt.wait()
    assert processes.is_alive(first.pid)
    harness.worker(after=hurt)
    harness.await_end()
    assert not processes.is_alive(first.pid)
    assert harness.states()["work"][:4] == ("Succeeded", None, 2, 0)
    findings = harness.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_job_is_killed_in_the_middle_of_its_run_and_is_tried_again(harness: FaultHarness) -> None:
    harness.maintainer()
    harness.submit(
        "flow",
        work={
            "command": f"test $WORKRON_ATTEMPT = 2 || live {harness.folder}/go",
            "backoff": {"initial": "10ms"},
        },
    )
    harness.worker()
    os.kill(harness.await_execution().pid, signal.SIGKILL)
    harness.await_end()
    assert harness.states() == {"work": ("Succeeded", None, 2, 1, 0)}
    findings = harness.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])
