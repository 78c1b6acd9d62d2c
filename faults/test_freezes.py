"""SIGSTOP past the lease, then SIGCONT: what comes back late is refused, and ends at once."""

from faults import processes
from faults.crew import Worker
from faults.house import LEASE_SECONDS, House
from faults.ledger import Execution

_BEATS_PER_LEASE = 4


def _begin(house: House) -> tuple[Worker, Execution]:
    """Have a worker run a job that goes on until it may end, a word of its own for each attempt."""
    house.maintainer()
    house.submit("flow", work=f"live {house.folder}/go-$WORKRON_ATTEMPT")
    worker = house.worker()
    return worker, house.await_execution()


def _await_second(house: House) -> None:
    """Have another worker begin the job's second attempt."""
    house.worker()
    house.await_execution(attempt=2)


def _await_overlap(house: House) -> None:
    """Have both attempts be seen alive: the frozen runner cannot end the first."""
    _await_second(house)
    house.until(lambda: house.check().overlaps, "both attempts tell that they live")


def _let_end(house: House, attempt: int) -> None:
    (house.folder / f"go-{attempt}").touch()


def _await_ended(house: House, attempt: int) -> None:
    def has_ended() -> bool:
        return any(one.has_ended for one in house.executions() if one.attempt == attempt)

    house.until(has_ended, f"the command of attempt {attempt} comes to its end")


def _await_return(house: House, worker: Worker) -> None:
    """Wait until a worker that has gone on has said what it had to, and beats as usual."""
    house.await_beats(worker, _BEATS_PER_LEASE)


def _assert_second_is_accepted(house: House, overlaps: int) -> None:
    assert house.unfinished() == 1, "a stale end was accepted"
    _let_end(house, 2)
    house.await_end()
    assert house.states()["work"][:4] == ("Succeeded", None, 2, 0)
    findings = house.check()
    assert findings.wrongs == []
    assert len(findings.overlaps) == overlaps


def test_frozen_agent_has_its_command_ended_by_the_runner_before_another_begins(
    house: House,
) -> None:
    worker, first = _begin(house)
    with house.frozen(worker, worker.pid):
        house.await_death(first, seconds=LEASE_SECONDS)
        house.await_reap(worker)
        _await_second(house)
    _await_return(house, worker)
    _assert_second_is_accepted(house, overlaps=0)


def test_frozen_agent_reports_an_end_too_late_and_is_refused(house: House) -> None:
    worker, _ = _begin(house)
    with house.frozen(worker, worker.pid):
        _let_end(house, 1)
        _await_ended(house, 1)
        house.await_reap(worker)
        _await_second(house)
    _await_return(house, worker)
    _assert_second_is_accepted(house, overlaps=0)


def test_frozen_runner_ends_its_command_on_return_and_its_agent_hands_it_back(
    house: House,
) -> None:
    worker, first = _begin(house)
    with house.frozen(worker, worker.await_runner()):
        house.await_beats(worker, 2 * _BEATS_PER_LEASE)
        assert processes.is_alive(first.pid)
    house.await_death(first)
    _let_end(house, 2)
    house.await_end()
    assert house.states() == {"work": ("Succeeded", None, 2, 0, 0)}
    findings = house.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_end_that_a_frozen_runner_has_missed_is_accepted_once(house: House) -> None:
    worker, _ = _begin(house)
    with house.frozen(worker, worker.await_runner()):
        _let_end(house, 1)
        _await_ended(house, 1)
        house.await_beats(worker, 2 * _BEATS_PER_LEASE)
        assert house.unfinished() == 1
    # It may take the end for one that came too late; then the command is run again.
    _let_end(house, 2)
    house.await_end()
    assert set(house.rows("state", "failures", "losses")) == {("Succeeded", 0, 0)}
    findings = house.check()
    assert (findings.wrongs, findings.overlaps) == ([], [])


def test_frozen_runner_whose_agent_was_killed_ends_its_command_on_return(house: House) -> None:
    worker, first = _begin(house)
    runner = worker.await_runner()
    with house.frozen(worker, runner):
        worker.kill()
        house.await_reap(worker)
        _await_overlap(house)
    house.await_death(first)
    house.until(lambda: not processes.is_alive(runner), "the runner has gone, too", seconds=5)
    _assert_second_is_accepted(house, overlaps=1)


def test_frozen_agent_and_runner_end_their_command_on_return(house: House) -> None:
    worker, first = _begin(house)
    with house.frozen(worker, worker.pid, worker.await_runner()):
        house.await_reap(worker)
        _await_overlap(house)
    house.await_death(first)
    _await_return(house, worker)
    _assert_second_is_accepted(house, overlaps=1)


def test_frozen_agent_and_runner_report_an_end_too_late_and_are_refused(house: House) -> None:
    worker, _ = _begin(house)
    with house.frozen(worker, worker.pid, worker.await_runner()):
        house.await_reap(worker)
        _await_second(house)
        _let_end(house, 1)
        _await_ended(house, 1)
    _await_return(house, worker)
    _assert_second_is_accepted(house, overlaps=1)


def test_frozen_worker_with_its_command_ends_it_on_return(house: House) -> None:
    worker, first = _begin(house)
    with house.frozen(worker, worker.pid, worker.await_runner(), first.pid):
        house.await_reap(worker)
        _await_second(house)
    house.await_death(first)
    _await_return(house, worker)
    _assert_second_is_accepted(house, overlaps=_none_or_one(house))


def _none_or_one(house: House) -> int:
    """A command that was frozen, too, overlaps if it says a word more before it is ended."""
    return len(house.check().overlaps)
