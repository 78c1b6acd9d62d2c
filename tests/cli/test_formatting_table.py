"""Tables of terminal output."""

import pytest

from workron.cli.table import Table

COLOURS = {"Failed": "red"}


def test_columns_are_as_wide_as_their_widest_word(capsys: pytest.CaptureFixture[str]) -> None:
    Table(["NAME", "N", "WHY"], COLOURS).print([["flow", "", "bad"], ["ü", "1,000", ""]])
    assert capsys.readouterr().out.splitlines() == [
        "NAME   N       WHY",
        "flow           bad",
        "ü      1,000",
    ]


def test_wide_characters_take_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    Table(["A", "B"], COLOURS).print([["日本", "x"], ["abc", "y"]])
    assert capsys.readouterr().out.splitlines() == ["A      B", "日本   x", "abc    y"]


def test_states_have_colors_and_columns_stay_aligned_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    Table(["STATUS", "WHY"], COLOURS).print([["Failed", "it is bad"], ["Running", "x"]])
    assert capsys.readouterr().out.splitlines() == [
        "\x1b[2mSTATUS    WHY\x1b[0m",
        "\x1b[31mFailed\x1b[0m    it is bad",
        "Running   x",
    ]


def test_long_line_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    Table(["NAME"], COLOURS).print([["x" * 500]])
    assert capsys.readouterr().out.splitlines()[1] == "x" * 500


def test_later_lines_keep_the_columns_and_have_no_heading(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = Table(["NAME", "N"], COLOURS)
    for rows in ([["short", "1"]], [["much-longer", "2"]], [["x", "3"]]):
        table.print(rows)
    assert capsys.readouterr().out.splitlines() == [
        "NAME    N",
        "short   1",
        "much-longer   2",
        "x             3",
    ]
