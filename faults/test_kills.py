"""`kill -9` of an agent, a runner and a job, at every named point of a claim and of a completion.

Two jobs, one after the other, on a worker with a killed process; another worker runs the rest.
"""

import os
import signal
from collections.abc import Callable

import pytest

from faults import processes
from faults.harness import FaultHarness
from faults.programs import Worker
from faults.proxy import Moment, Proxy, ProxyConnection

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
    # The call that completes the first job has claimed the second.
    (Moment.AFTER, "complete"): {"work": 1, "after": 2},
}


def _inject(
    harness: FaultHarness,
    moment: Moment,
    verb: str,
    kill: Callable[[Worker, ProxyConnection], None],
) -> tuple[Worker, Proxy]:
    """Start a worker, inject a kill at that point, and wait for it."""
    killed: list[Worker] = []
    proxy = harness.proxy()
    reached = proxy.at(moment, verb, lambda connection: kill(killed[0], connection))
    killed.append(harness.worker(proxy=proxy))
    assert reached.wait(30), harness.logs()
    return killed[0], proxy


def _kill_agent(worker: Worker, connection: ProxyConnection) -> None:
    worker.kill()
    connection.reset()


def _kill_runner(worker: Worker, _: ProxyConnection) -> None:
    os.kill(worker.await_runner(), signal.SIGKILL)


def _attempts(harness: FaultHarness) -> dict[str, int]:
    return {name: attempts for name, (_, _, attempts, _, _) in harness.states().items()}


@pytest.mark.parametrize(("moment", "verb"), _POINTS)
def test_every_job_ends_once_when_an_agent_is_killed(
    harness: FaultHarness, moment: Moment, verb: str
) -> None:
    harness.maintainer()
    harness.submit("flow", **_FLOW)
    killed, _ = _inject(harness, moment, verb, _kill_agent)
    killed.wait()
    harness.worker()
    harness.await_end()
    assert _attempts(harness) == _ATTEMPTS_OF_A_KILLED_AGENT[moment, verb]
    harness.assert_nothing_found()


@pytest.mark.parametrize(("moment", "verb"), _POINTS)
def test_every_job_ends_once_when_a_runner_is_killed(
    harness: FaultHarness, moment: Moment, verb: str
) -> None:
    harness.maintainer()
    harness.submit("flow", **_FLOW)
    killed, _ = _inject(harness, moment, verb, _kill_runner)
    harness.await_end()
    assert {state for state, *_ in harness.states().values()} == {"Succeeded"}
    assert killed.is_alive
    harness.assert_nothing_found()


def test_command_is_killed_when_its_agent_is_killed(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work=f"live {harness.folder}/go")
    killed = harness.worker()
    first = harness.await_execution()
    runner = killed.await_runner()
    killed.kill()
    harness.await_death(first)
    harness.until(lambda: not processes.is_alive(runner), "its runner has exited, too", seconds=5)
    (harness.folder / "go").touch()
    harness.worker()
    harness.await_end()
    # The loss counts for a job that was the only one of its worker.
    assert harness.states() == {"work": ("Succeeded", None, 2, 0, 1)}
    harness.assert_nothing_found()


def test_command_is_killed_when_its_runner_is_killed(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work=f"test $WORKRON_ATTEMPT -gt {_ROUNDS} || live {harness.folder}/go")
    killed = harness.worker()
    sockets = set()
    for attempt in range(1, _ROUNDS + 1):
        running = harness.await_execution(attempt)
        sockets.add(processes.open_sockets(killed.pid))
        os.kill(killed.await_runner(), signal.SIGKILL)
        harness.await_death(running)
    harness.await_end()
    # It was the only job each time, so the losses count.
    assert harness.states()["work"] == ("Succeeded", None, _ROUNDS + 1, 0, _ROUNDS)
    assert killed.is_alive
    assert len(sockets) == 1, "sockets to dead runners are kept open"
    harness.assert_nothing_found()


def test_next_worker_cleans_up_when_agent_and_runner_are_killed_at_once(
    harness: FaultHarness,
) -> None:
    harness.maintainer()
    harness.submit("flow", work=f"test $WORKRON_ATTEMPT -gt 1 || live {harness.folder}/go")
    killed = harness.worker()
    first = harness.await_execution()
    runner = killed.await_runner()
    # Stopped first, so that neither notices the other's end.
    killed.stop(killed.pid, runner)
    os.kill(runner, signal.SIGKILL)
    killed.kill()
    killed.wait()
    assert processes.is_alive(first.pid)
    harness.worker(after=killed)
    harness.await_end()
    assert not processes.is_alive(first.pid)
    assert harness.states()["work"][:4] == ("Succeeded", None, 2, 0)
    harness.assert_nothing_found()


def test_job_is_retried_when_its_command_is_killed(harness: FaultHarness) -> None:
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
    harness.assert_nothing_found()
