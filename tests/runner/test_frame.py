"""Frames come out as they went in, and a side that would make the other grow is refused."""

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron_runner import protocol
from workron_runner.protocol import Frame, FrameDecoder, ProtocolError

_FRAMES = st.lists(st.builds(Frame, st.integers(0, 255), st.binary(max_size=50)))


@given(_FRAMES, st.lists(st.integers(0, 500)))
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(
    frames: list[Frame], cuts: list[int]
) -> None:
    stream = b"".join(protocol.encode_frame(*one) for one in frames)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    decoder = FrameDecoder()
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert [one for piece in pieces for one in decoder.feed(piece)] == frames


def test_frame_is_length_kind_and_payload() -> None:
    assert protocol.encode_frame(2, b"a", b"bc") == b"\0\0\0\3\2abc"


def test_frame_that_announces_too_much_is_refused_before_it_is_taken_in() -> None:
    with pytest.raises(ProtocolError, match="at most 67108864"):
        FrameDecoder().feed(struct.pack(">IB", protocol.MAX_FRAME_BYTES + 1, 1))
