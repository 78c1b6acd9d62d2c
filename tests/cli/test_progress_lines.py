"""Progress as lines, when the output goes to a pipe."""

from tests.cli import rows
from workron.cli.progress import ProgressLines, RunSnapshot
from workron.core.states import State


def test_lines_of_one_snapshot_are_written_together() -> None:
    written: list[str] = []
    again = rows.row("flaky", State.WAITING, failures=2)
    ends = [rows.row("a", State.SUCCEEDED), rows.row("b", State.FAILED, exit_code=3)]
    root = rows.run()
    ProgressLines(written.append).show(
        RunSnapshot([], [(root, end) for end in ends], [(root, again)])
    )
    (text,) = written
    assert [line.split()[:2] for line in text.splitlines()] == [
        ["Succeeded", "flow/a"],
        ["Failed", "flow/b"],
        ["Retrying", "flow/flaky"],
    ]


def test_nothing_is_written_when_nothing_has_changed() -> None:
    written: list[str] = []
    ProgressLines(written.append).show(RunSnapshot([], [], []))
    assert written == []
