"""Progress where there is no terminal."""

from tests.cli import rows
from workron.cli.progress import ProgressLines, RunSnapshot
from workron.core.states import State


def test_each_end_is_a_line_and_all_lines_of_a_look_are_written_at_once() -> None:
    written: list[str] = []
    again = rows.row("flaky", State.WAITING, failures=2)
    ends = [rows.row("a", State.SUCCEEDED), rows.row("b", State.FAILED, exit_code=3)]
    root = rows.root()
    ProgressLines(written.append).show(
        RunSnapshot([], [(root, end) for end in ends], [(root, again)])
    )
    (text,) = written
    assert [line.split()[:2] for line in text.splitlines()] == [
        ["Succeeded", "flow/a"],
        ["Failed", "flow/b"],
        ["Retrying", "flow/flaky"],
    ]


def test_look_that_brought_nothing_writes_nothing() -> None:
    written: list[str] = []
    ProgressLines(written.append).show(RunSnapshot([], [], []))
    assert written == []
