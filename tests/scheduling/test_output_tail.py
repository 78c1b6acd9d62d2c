"""Output as text: without control sequences, and not longer than requested."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron.core import printable


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (b"plain\n\ttext\n", "plain\n\ttext\n"),
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        (b"\x1bP1;2qpixels\x1b\\x", "x"),
        (b"a\r\nb\rc", "a\nbc"),
        (b"\x00\x07\x08\x7fx", "x"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        ("\u202eback".encode(), "back"),
        (b"\x9b31mx", "\ufffd31mx"),
        ("\u009b31mx".encode(), "31mx"),
        (b"\x1b", ""),
    ],
)
def test_control_sequences_are_removed_from_text(output: bytes, text: str) -> None:
    assert printable.text(output) == text


@given(st.binary(), st.integers(0, 50))
def test_tail_is_the_end_and_not_longer_than_requested(output: bytes, limit: int) -> None:
    shown = printable.tail(output, limit)
    assert len(shown.encode()) <= limit
    assert printable.text(output).endswith(shown)


@given(st.binary())
def test_text_has_no_escape_and_no_control_but_tab_and_line_feed(output: bytes) -> None:
    assert not [one for one in printable.text(output) if one < " " and one not in "\n\t"]


def test_line_is_one_line() -> None:
    assert printable.line("a\n\tb  c\x1b[1m") == "a b c"
