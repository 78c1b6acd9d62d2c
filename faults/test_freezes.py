"""SIGSTOP past the lease, then SIGCONT: what comes back late is refused, and ends at once."""

from faults import processes
from faults.execution_log import Execution
from faults.harness import LEASE_SECONDS, FaultHarness
from faults.programs import Worker

_BEATS_PER_LEASE = 4


def _begin(harness: FaultHarness) -> tuple[Worker, Execution]:
    """Have a worker run a job that goes on until it may end, a word of its own for each attempt."""
    harness.maintainer()
    harness.submit("flow", work=f"live {harness.folder}/go-$WORKRON_ATTEMPT")
    worker = harness.worker()
    return worker, harness.await_execution()


def _await_second(harness: FaultHarness) -> None:
    """Have another worker begin the job's second attempt."""
    harness.worker()
    harness.await_execution(attempt=2)


def _await_overlap(harness: FaultHarness) -> None:
    """Have both attempts be seen alive: the frozen runner cannot end the first."""
    _await_second(harness)
    harness.until(lambda: harness.check().overlaps, "both attempts tell that they live")


def _let_end(harness: FaultHarness, attempt: int) -> None:
    (harness.folder / f"go-{attempt}").touch()


def _await_ended(harness: FaultHarness, attempt: int) -> None:
    def has_ended() -> bool:
        return any(one.has_ended for one in harness.executions() if one.attempt == attempt)

    harness.until(has_ended, f"the command of attempt {attempt} comes to its end")


def _await_return(harness: FaultHarness, worker: Worker) -> None:
    """Wait until a worker that has gone on has said what it had to, and beats as usual."""
    harness.await_heartbeats(worker, _BEATS_PER_LEASE)


def _assert_second_is_accepted(harness: FaultHarness, overlaps: int) -> None:
    assert harness.unfinished() == 1, "a stale end was accepted"
    _let_end(harness, 2)
    harness.await_end()
    assert harness.states()["work"][:4] == ("Succeeded", None, 2, 0)
    findings = harness.check()
    assert findings.wrongs == []
    assert len(findings.overlaps) == overlaps


def test_frozen_agent_has_its_command_ended_by_the_runner_before_another_begins(
    harness: FaultHarness,
) -> None:
    worker, first = _begin(harness)
    with harness.frozen(worker, worker.pid):
        harness.await_death(first, seconds=LEASE_SECONDS)
        harness.await_reap(worker)
        _await_second(harness)
    _await_return(harness, worker)
    _assert_second_is_accepted(harness, overlaps=0)


def test_frozen_agent_reports_an_end_too_late_and_is_refused(harness: FaultHarness) -> None:
    worker, _ = _begin(harness)
    with harness.frozen(worker, worker.pid):
        _let_end(harness, 1)
        _await_ended(harness, 1)
        harness.await_reap(worker)
        _await_second(harness)
    _await_return(harness, worker)
    _assert_second_is_accepted(harness, overlaps=0)


def test_frozen_runner_ends_its_command_on_return_and_its_agent_hands_it_back(
    harness: FaultHarness,
) -> None:
    worker, first = _begin(harness)
    with harness.frozen(worker, worker.await_runner()):
        harness.await_heartbeats(worker, 2 * _BEATS_PER_LEASE)
        assert processes.is_alive(first.pid)
    harness.await_death(first)
    _let_end(harness, 2)
    harness.await_end()
    assert harness.states() == {"work": ("Succeeded", None, 2, 0, 0)}
    findings = harness.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_end_that_a_frozen_runner_has_missed_is_accepted_once(harness: FaultHarness) -> None:
    worker, _ = _begin(harness)
    with harness.frozen(worker, worker.await_runner()):
        _let_end(harness, 1)
        _await_ended(harness, 1)
        harness.await_heartbeats(worker, 2 * _BEATS_PER_LEASE)
        assert harness.unfinished() == 1
    # It may take the end for one that came too late; then the command is run again.
    _let_end(harness, 2)
    harness.await_end()
    assert set(harness.rows("state", "failures", "losses")) == {("Succeeded", 0, 0)}
    findings = harness.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_frozen_runner_whose_agent_was_killed_ends_its_command_on_return(
    harness: FaultHarness,
) -> None:
    worker, first = _begin(harness)
    runner = worker.await_runner()
    with harness.frozen(worker, runner):
        worker.kill()
        harness.await_reap(worker)
        _await_overlap(harness)
    harness.await_death(first)
    harness.until(lambda: not processes.is_alive(runner), "the runner has gone, too", seconds=5)
    _assert_second_is_accepted(harness, overlaps=1)


def test_frozen_agent_and_runner_end_their_command_on_return(harness: FaultHarness) -> None:
    worker, first = _begin(harness)
    with harness.frozen(worker, worker.pid, worker.await_runner()):
        harness.await_reap(worker)
        _await_overlap(harness)
    harness.await_death(first)
    _await_return(harness, worker)
    _assert_second_is_accepted(harness, overlaps=1)


def test_frozen_agent_and_runner_report_an_end_too_late_and_are_refused(
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


def test_frozen_worker_with_its_command_ends_it_on_return(harness: FaultHarness) -> None:
    worker, first = _begin(harness)
    with harness.frozen(worker, worker.pid, worker.await_runner(), first.pid):
        harness.await_reap(worker)
        _await_second(harness)
    harness.await_death(first)
    _await_return(harness, worker)
    _assert_second_is_accepted(harness, overlaps=_none_or_one(harness))


def _none_or_one(harness: FaultHarness) -> int:
    """A command that was frozen, too, overlaps if it says a word more before it is ended."""
    return len(harness.check().overlaps)
