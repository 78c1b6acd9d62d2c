"""What is kept of an output: exact while short, head and tail when long, bounded always."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron_runner.attempt import CapturedOutput


def _keep(limit: int, *pieces: bytes) -> bytes:
    kept = CapturedOutput(limit)
    for piece in pieces:
        kept.add(piece)
    return kept.value()[0]


@given(st.lists(st.binary(max_size=40)))
def test_output_is_kept_byte_by_byte_when_it_fits(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert _keep(len(whole), *pieces) == whole


@given(st.lists(st.binary(max_size=400)), st.integers(0, 300))
def test_output_is_never_larger_than_its_limit(pieces: list[bytes], limit: int) -> None:
    assert len(_keep(limit, *pieces)) <= limit


def test_output_keeps_head_and_tail_and_says_so_when_it_is_too_long() -> None:
    value = _keep(200, b"first", b"x" * 1000, b"last")
    assert value.startswith(b"firstxxx")
    assert value.endswith(b"xxxlast")
    assert b"\n[... of 1009 bytes in all, some are left out here ...]\n" in value
    assert len(value) == 200


@pytest.mark.parametrize("limit", [0, 1, 7])
def test_output_keeps_the_tail_alone_when_the_limit_is_tiny(limit: int) -> None:
    assert _keep(limit, b"0123456789") == b"0123456789"[10 - limit :]


@pytest.mark.parametrize("limit", [0, 1, 1000])
def test_output_of_a_flood_takes_no_more_memory_than_a_few_times_the_limit(limit: int) -> None:
    kept = CapturedOutput(limit)
    for _ in range(10_000):
        kept.add(b"x" * 1000)
    assert len(kept._head) + len(kept._tail) <= 3 * limit + 1000
