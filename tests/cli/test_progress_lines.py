"""Progress as lines, when the output goes to a pipe."""

import dataclasses
from datetime import timedelta

from rich.text import Text

from tests.cli import rows
from workron.cli.progress import FailureDetail, RunSnapshot
from workron.cli.progress_lines import ProgressLines
from workron.core.ids import JobId
from workron.core.states import Reason, State
from workron.store.types import AttemptRow

_OUTPUT = b"".join(b"line %d\n" % number for number in range(1, 21))


def _detail(job: int, output: bytes = _OUTPUT) -> dict[JobId, FailureDetail]:
    attempt = AttemptRow(JobId(job), 1, "Failed", Reason.EXIT_CODE, 7, "w", rows.NOON, rows.NOON)
    return {JobId(job): FailureDetail(attempt, output, {"command": "python3 a.py"})}


def _lines(snapshot: RunSnapshot, *, has_output: bool = True) -> list[str]:
    written: list[Text] = []
    ProgressLines(written.append, has_output=has_output).show(snapshot)
    return [line for text in written for line in text.plain.splitlines()]


def test_lines_of_one_snapshot_are_written_together() -> None:
    written: list[Text] = []
    again = rows.row("flaky", State.WAITING, failures=2)
    ends = [rows.row("a", State.SUCCEEDED), rows.row("b", State.FAILED, exit_code=3)]
    root = rows.run()
    ProgressLines(written.append, has_output=True).show(
        RunSnapshot([], [(root, end) for end in ends], [(root, again)])
    )
    (text,) = written
    assert [line.split()[:2] for line in text.plain.splitlines()] == [
        ["Succeeded", "flow/a"],
        ["Failed", "flow/b"],
        ["Retrying", "flow/flaky"],
    ]


def test_nothing_is_written_when_nothing_has_changed() -> None:
    assert _lines(RunSnapshot([], [], [])) == []


def test_last_lines_follow_when_a_job_failed() -> None:
    failed = rows.row("a", State.FAILED, attempts=2, reason=Reason.EXIT_CODE, message="exit code 7")
    snapshot = RunSnapshot([], [(rows.run(), failed)], [], details=_detail(2))
    first, *output = _lines(snapshot)
    assert first == "Failed     flow/a  exit code 7 (ExitCode), 2 attempts"
    assert output == [f"  | line {number}" for number in range(11, 21)]


def test_last_lines_and_the_pause_follow_when_a_job_is_retried() -> None:
    row = rows.row("a", State.WAITING, failures=1, due=rows.NOON + timedelta(seconds=9))
    first, *output = _lines(RunSnapshot([], [], [(rows.run(), row)], details=_detail(2)))
    assert first == "Retrying   flow/a  failed once, exit code 7 (ExitCode), retry after 9.0 s"
    assert output == ["  | line 18", "  | line 19", "  | line 20"]


def test_no_output_follows_when_it_was_printed_already() -> None:
    failed = rows.row("a", State.FAILED)
    snapshot = RunSnapshot([], [(rows.run(), failed)], [], details=_detail(2))
    retried = dataclasses.replace(snapshot, ended=[], failing=[(rows.run(), failed)])
    assert len(_lines(snapshot, has_output=False)) == 1
    assert len(_lines(retried, has_output=False)) == 1


def test_control_sequences_are_removed_when_a_failure_is_printed() -> None:
    failed = rows.row("a", State.FAILED)
    details = _detail(2, b"\x1b[2J\x1b[31mred\x07\n")
    _, output = _lines(RunSnapshot([], [(rows.run(), failed)], [], details=details))
    assert output == "  | red"


def test_hint_is_printed_at_the_first_failure_and_at_the_end() -> None:
    details = _detail(2, b"cat: data.csv: No such file or directory\n")
    ended = (rows.run(), rows.row("a", State.FAILED, failures=3))
    retried = [(rows.run(), rows.row("a", State.WAITING, failures=count)) for count in (1, 2)]
    snapshots = [
        RunSnapshot([], [], retried[:1], details=details),
        RunSnapshot([], [], retried[1:], details=details),
        RunSnapshot([], [ended], [], details=details),
    ]
    hints = [
        [line for line in _lines(one, has_output=False) if "  hint: " in line] for one in snapshots
    ]
    assert [len(one) for one in hints] == [1, 0, 1]
