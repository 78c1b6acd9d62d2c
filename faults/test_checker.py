"""The checker finds each kind of error in an execution log or a store."""

import dataclasses
import pathlib

import pytest

from faults import checker, execution_log
from faults.checker import Books, Freeze
from faults.execution_log import Execution

_FIRST = Execution(job=1, attempt=1, fence=10, worker="w0", pid=7, began=1.0, last=2.0)
_SECOND = Execution(
    job=1, attempt=2, fence=11, worker="w1", pid=8, began=3.0, last=4.0, has_ended=True
)
_NAME = ("flow", "task", None)
_BOOKS = Books(
    jobs={1: _NAME},
    done={1: ("Succeeded", 2)},
    attempts=[(1, 1, "Lost"), (1, 2, "Succeeded")],
)


def _changed(**fields: object) -> Books:
    return dataclasses.replace(_BOOKS, **fields)  # type: ignore[arg-type]


def test_ledger_and_store_that_agree_show_nothing_wrong() -> None:
    findings = checker.check([_NAME], [_FIRST, _SECOND], _BOOKS)
    assert findings.wrongs == []
    assert str(findings).startswith("lost 0, doubled 0, overlapping 0")


@pytest.mark.parametrize(
    "books",
    [_changed(done={}), _changed(jobs={}, done={}, attempts=[])],
    ids=["without an end", "forgotten"],
)
def test_acknowledged_job_is_lost(books: Books) -> None:
    assert checker.check([_NAME], [_FIRST, _SECOND], books).lost


@pytest.mark.parametrize(
    ("executions", "books", "word"),
    [
        (
            [dataclasses.replace(_FIRST, has_ended=True), _SECOND],
            _changed(attempts=[(1, 1, "Succeeded"), (1, 2, "Succeeded")]),
            "has ended in attempts [1, 2]",
        ),
        ([_FIRST], _BOOKS, "was never executed"),
        ([_FIRST, dataclasses.replace(_SECOND, has_ended=False)], _BOOKS, "did not come to that"),
        ([_FIRST, dataclasses.replace(_SECOND, begins=2)], _BOOKS, "was executed 2 times"),
        ([_FIRST, _SECOND], _changed(done={1: ("Succeeded", 1)}), "is done by attempt 1"),
    ],
)
def test_end_is_accepted_twice_or_of_nothing(
    executions: list[Execution], books: Books, word: str
) -> None:
    (wrong,) = checker.check([_NAME], executions, books).doubled[:1]
    assert word in wrong


def test_executions_of_one_job_overlap() -> None:
    longer = dataclasses.replace(_FIRST, last=3.5)
    findings = checker.check([_NAME], [longer, _SECOND], _BOOKS)
    assert [one.seconds for one in findings.overlaps] == [0.5]
    assert findings.wrongs


@pytest.mark.parametrize(
    ("freeze", "is_excused"),
    [
        (Freeze("w0", since=1.5, until=3.2), True),
        (Freeze("w1", since=1.5, until=3.2), False),
        (Freeze("w0", since=0.1, until=0.2), False),
        (Freeze("w0", since=1.5, until=2.2), False),
    ],
    ids=["its worker was frozen", "another was", "long ago", "it was awake for more than a second"],
)
def test_overlap_is_excused_by_a_freeze_alone(freeze: Freeze, *, is_excused: bool) -> None:
    longer = dataclasses.replace(_FIRST, last=3.5)
    findings = checker.check([_NAME], [longer, _SECOND], _BOOKS, [freeze])
    assert len(findings.overlaps) == 1
    assert (findings.wrongs == []) is is_excused


def test_job_that_began_before_its_upstream_ended_is_early() -> None:
    books = _changed(
        jobs={1: _NAME, 2: ("flow", "after", None)},
        done={1: ("Succeeded", 2), 2: ("Succeeded", 1)},
        attempts=[*_BOOKS.attempts, (2, 1, "Succeeded")],
        edges=[(1, 2)],
    )
    after = dataclasses.replace(_SECOND, job=2, attempt=1, began=3.9)
    assert checker.check([], [_FIRST, _SECOND, after], books).wrongs == [
        "job 2 began before job 1 ended"
    ]


def test_fence_that_does_not_rise_is_told() -> None:
    lower = dataclasses.replace(_SECOND, fence=9)
    assert checker.check([_NAME], [_FIRST, lower], _BOOKS).backward


def test_ledger_is_read_as_commands_write_it(tmp_path: pathlib.Path) -> None:
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
