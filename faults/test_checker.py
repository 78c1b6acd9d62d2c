"""The checker finds each kind of error in an execution log or a store."""

import dataclasses
import pathlib

import pytest

from faults import checker, execution_log
from faults.checker import Freeze, StoreState
from faults.execution_log import Execution

_FIRST = Execution(job=1, attempt=1, fence=10, worker="w0", pid=7, began=1.0, last=2.0)
_SECOND = Execution(
    job=1, attempt=2, fence=11, worker="w1", pid=8, began=3.0, last=4.0, has_ended=True
)
_NAME = ("flow", "task", None)
_STATE = StoreState(
    jobs={1: _NAME},
    done={1: ("Succeeded", 2)},
    attempts=[(1, 1, "Lost"), (1, 2, "Succeeded")],
)


def _changed(**fields: object) -> StoreState:
    return dataclasses.replace(_STATE, **fields)  # type: ignore[arg-type]


def test_nothing_is_found_when_log_and_store_agree() -> None:
    findings = checker.check([_NAME], [_FIRST, _SECOND], _STATE)
    assert findings.errors == []
    assert str(findings).startswith("lost 0, doubled 0, overlapping 0")


@pytest.mark.parametrize(
    "state",
    [_changed(done={}), _changed(jobs={}, done={}, attempts=[])],
    ids=["without an end", "unknown"],
)
def test_acknowledged_job_is_lost_when_it_has_no_end(state: StoreState) -> None:
    assert checker.check([_NAME], [_FIRST, _SECOND], state).lost


@pytest.mark.parametrize(
    ("executions", "state", "word"),
    [
        (
            [dataclasses.replace(_FIRST, has_ended=True), _SECOND],
            _changed(attempts=[(1, 1, "Succeeded"), (1, 2, "Succeeded")]),
            "has ended in attempts [1, 2]",
        ),
        ([_FIRST], _STATE, "was never executed"),
        ([_FIRST, dataclasses.replace(_SECOND, has_ended=False)], _STATE, "did not end"),
        ([_FIRST, dataclasses.replace(_SECOND, begins=2)], _STATE, "was executed 2 times"),
        ([_FIRST, _SECOND], _changed(done={1: ("Succeeded", 1)}), "is done by attempt 1"),
    ],
)
def test_end_is_doubled_when_it_is_accepted_twice_or_without_execution(
    executions: list[Execution], state: StoreState, word: str
) -> None:
    (error,) = checker.check([_NAME], executions, state).doubled[:1]
    assert word in error


def test_overlap_is_found_when_executions_of_a_job_overlap() -> None:
    longer = dataclasses.replace(_FIRST, last=3.5)
    findings = checker.check([_NAME], [longer, _SECOND], _STATE)
    assert [one.seconds for one in findings.overlaps] == [0.5]
    assert findings.errors


@pytest.mark.parametrize(
    ("freeze", "is_excused"),
    [
        (Freeze("w0", since=1.5, until=3.2), True),
        (Freeze("w1", since=1.5, until=3.2), False),
        (Freeze("w0", since=0.1, until=0.2), False),
        (Freeze("w0", since=1.5, until=2.2), False),
    ],
    ids=[
        "its worker was frozen",
        "another was frozen",
        "long ago",
        "it had continued for more than a second",
    ],
)
def test_overlap_is_excused_only_when_its_worker_was_frozen(
    freeze: Freeze, *, is_excused: bool
) -> None:
    longer = dataclasses.replace(_FIRST, last=3.5)
    findings = checker.check([_NAME], [longer, _SECOND], _STATE, [freeze])
    assert len(findings.overlaps) == 1
    assert (findings.errors == []) is is_excused


def test_job_is_early_when_it_began_before_its_upstream_ended() -> None:
    state = _changed(
        jobs={1: _NAME, 2: ("flow", "after", None)},
        done={1: ("Succeeded", 2), 2: ("Succeeded", 1)},
        attempts=[*_STATE.attempts, (2, 1, "Succeeded")],
        edges=[(1, 2)],
    )
    after = dataclasses.replace(_SECOND, job=2, attempt=1, began=3.9)
    assert checker.check([], [_FIRST, _SECOND, after], state).errors == [
        "job 2 began before job 1 ended"
    ]


def test_fence_is_backward_when_it_does_not_rise() -> None:
    lower = dataclasses.replace(_SECOND, fence=9)
    assert checker.check([_NAME], [_FIRST, lower], _STATE).backward


def test_execution_log_is_read_as_commands_write_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "execution_log"
    home = f"/harness/w03/workron-{'0' * 32}/5"
    path.write_text(
        f"4 1 99 begin 1.00 12 {home}\n5 1 98 begin 1.00 13 {home}\n4 1 99 alive 1.50 12 {home}\n"
        f"4 1 99 end 2.25 12 {home}\n5 1 98 begin 3.00 14 {home}\n"
    )
    assert execution_log.read(path) == [
        Execution(4, 1, 99, "w03", 12, 1.0, 2.25, has_ended=True),
        Execution(5, 1, 98, "w03", 13, 1.0, 3.0, begins=2),
    ]
