"""Tables of terminal output."""

import pytest

from workron.cli import formatting
from workron.core.states import State

COLOURS = {State.FAILED: "red"}


def test_columns_are_as_wide_as_their_widest_word(capsys: pytest.CaptureFixture[str]) -> None:
    formatting.print_table(["NAME", "N", "WHY"], [["flow", "", "bad"], ["ü", "1,000", ""]], COLOURS)
    assert capsys.readouterr().out.splitlines() == [
        "NAME   N       WHY",
        "flow           bad",
        "ü      1,000",
    ]


def test_wide_characters_take_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    formatting.print_table(["A", "B"], [["日本", "x"], ["abc", "y"]], COLOURS)
    assert capsys.readouterr().out.splitlines() == ["A      B", "日本   x", "abc    y"]


def test_states_have_colors_and_columns_stay_aligned_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    formatting.print_table(["STATUS", "WHY"], [["Failed", "it is bad"], ["Running", "x"]], COLOURS)
    assert capsys.readouterr().out.splitlines() == [
        "\x1b[2mSTATUS    WHY\x1b[0m",
        "\x1b[31mFailed\x1b[0m    it is bad",
        "Running   x",
    ]


def test_long_line_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    formatting.print_table(["NAME"], [["x" * 500]], COLOURS)
    assert capsys.readouterr().out.splitlines()[1] == "x" * 500
