"""SIGSTOP past the lease, then SIGCONT: late reports are refused, and commands end at once."""

from faults import processes
from faults.execution_log import Execution
from faults.harness import LEASE_SECONDS, FaultHarness
from faults.programs import Worker

_HEARTBEATS_PER_LEASE = 4


def _begin(harness: FaultHarness) -> tuple[Worker, Execution]:
    """Have a worker run a job whose attempts end when their own files exist."""
    harness.maintainer()
    harness.submit("flow", work=f"live {harness.folder}/go-$WORKRON_ATTEMPT")
    worker = harness.worker()
    return worker, harness.await_execution()


def _await_second(harness: FaultHarness) -> None:
    """Have another worker begin the job's second attempt."""
    harness.worker()
    harness.await_execution(attempt=2)


def _await_overlap(harness: FaultHarness) -> None:
    """Wait until both attempts are alive: the frozen runner cannot kill the first."""
    _await_second(harness)
    harness.until(lambda: harness.check().overlaps, "both attempts log that they are alive")


def _let_end(harness: FaultHarness, attempt: int) -> None:
    (harness.folder / f"go-{attempt}").touch()


def _await_ended(harness: FaultHarness, attempt: int) -> None:
    def has_ended() -> bool:
        return any(one.has_ended for one in harness.executions() if one.attempt == attempt)

    harness.until(has_ended, f"the command of attempt {attempt} comes to its end")


def _await_return(harness: FaultHarness, worker: Worker) -> None:
    """Wait until a continued worker has reported, and sends heartbeats as usual."""
    harness.await_heartbeats(worker, _HEARTBEATS_PER_LEASE)


def _assert_second_is_accepted(harness: FaultHarness, overlaps: int) -> None:
    assert harness.unfinished() == 1, "a stale end was accepted"
    _let_end(harness, 2)
    harness.await_end()
    assert harness.states()["work"][:4] == ("Succeeded", None, 2, 0)
    findings = harness.check()
    assert findings.errors == []
    assert len(findings.overlaps) == overlaps


def test_runner_kills_the_command_before_another_begins_when_the_agent_is_frozen(
    harness: FaultHarness,
) -> None:
    worker, first = _begin(harness)
    with harness.frozen(worker, worker.pid):
        harness.await_death(first, seconds=LEASE_SECONDS)
        harness.await_reap(worker)
        _await_second(harness)
    _await_return(harness, worker)
    _assert_second_is_accepted(harness, overlaps=0)


def test_late_end_is_refused_when_the_agent_was_frozen(harness: FaultHarness) -> None:
    worker, _ = _begin(harness)
    with harness.frozen(worker, worker.pid):
        _let_end(harness, 1)
        _await_ended(harness, 1)
        harness.await_reap(worker)
        _await_second(harness)
    _await_return(harness, worker)
    _assert_second_is_accepted(harness, overlaps=0)


def test_runner_kills_its_command_and_the_claim_is_released_when_it_was_frozen(
    harness: FaultHarness,
) -> None:
    worker, first = _begin(harness)
    with harness.frozen(worker, worker.await_runner()):
        harness.await_heartbeats(worker, 2 * _HEARTBEATS_PER_LEASE)
        assert processes.is_alive(first.pid)
    harness.await_death(first)
    _let_end(harness, 2)
    harness.await_end()
    assert harness.states() == {"work": ("Succeeded", None, 2, 0, 0)}
    harness.assert_nothing_found()


def test_end_is_accepted_once_when_the_runner_was_frozen(harness: FaultHarness) -> None:
    worker, _ = _begin(harness)
    with harness.frozen(worker, worker.await_runner()):
        _let_end(harness, 1)
        _await_ended(harness, 1)
        harness.await_heartbeats(worker, 2 * _HEARTBEATS_PER_LEASE)
        assert harness.unfinished() == 1
    # The runner may treat the end as too late; then the command is run again.
    _let_end(harness, 2)
    harness.await_end()
    assert set(harness.rows("state", "failures", "losses")) == {("Succeeded", 0, 0)}
    harness.assert_nothing_found()


def test_runner_kills_its_command_when_it_was_frozen_and_its_agent_killed(
    harness: FaultHarness,
) -> None:
    worker, first = _begin(harness)
    runner = worker.await_runner()
    with harness.frozen(worker, runner):
        worker.kill()
        harness.await_reap(worker)
        _await_overlap(harness)
    harness.await_death(first)
    harness.until(lambda: not processes.is_alive(runner), "the runner has exited, too", seconds=5)
    _assert_second_is_accepted(harness, overlaps=1)


def test_command_is_killed_when_agent_and_runner_were_frozen(harness: FaultHarness) -> None:
    worker, first = _begin(harness)
    with harness.frozen(worker, worker.pid, worker.await_runner()):
        harness.await_reap(worker)
        _await_overlap(harness)
    harness.await_death(first)
    _await_return(harness, worker)
    _assert_second_is_accepted(harness, overlaps=1)


def test_late_end_is_refused_when_agent_and_runner_were_frozen(
    harness: FaultHarness,
) -> None:
    worker, _ = _begin(harness)
    with harness.frozen(worker, worker.pid, worker.await_runner()):
        harness.await_reap(worker)
        _await_second(harness)
        _let_end(harness, 1)
        _await_ended(harness, 1)
    _await_return(harness, worker)
    _assert_second_is_accepted(harness, overlaps=1)


def test_command_is_killed_when_it_was_frozen_with_its_worker(harness: FaultHarness) -> None:
    worker, first = _begin(harness)
    with harness.frozen(worker, worker.pid, worker.await_runner(), first.pid):
        harness.await_reap(worker)
        _await_second(harness)
    harness.await_death(first)
    _await_return(harness, worker)
    _assert_second_is_accepted(harness, overlaps=_none_or_one(harness))


def _none_or_one(harness: FaultHarness) -> int:
    """A frozen command overlaps if it logs once more before it is killed."""
    return len(harness.check().overlaps)
