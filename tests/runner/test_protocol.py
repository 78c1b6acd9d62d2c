"""Frames and messages are decoded as they were encoded; a wrong one is rejected with a reason."""

import itertools
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron_runner import protocol
from workron_runner.protocol import Frame, FrameDecoder, FrameKind, ProtocolError

_FRAMES = st.lists(st.builds(Frame, st.integers(0, 255), st.binary(max_size=50)))
_CLAIM = "0123456789abcdef" * 2
_RUN = protocol.Start(
    claim=_CLAIM, argv=["a", "\udcff"], environment={"A": "ü"}, inputs="{}", output_limit_bytes=1,
    window_bytes=0, workdir=None, timeout=1.5, grace=1, outlives_deadline=True,
)  # fmt: skip


@given(_FRAMES, st.lists(st.integers(0, 500)))
def test_frames_are_decoded_unchanged_when_the_stream_is_cut_anywhere(
    frames: list[Frame], cuts: list[int]
) -> None:
    stream = b"".join(protocol.encode_frame(*one) for one in frames)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    decoder = FrameDecoder()
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert [one for piece in pieces for one in decoder.feed(piece)] == frames


def test_frame_is_length_kind_and_payload() -> None:
    assert protocol.encode_frame(2, b"a", b"bc") == b"\0\0\0\3\2abc"


def test_frame_is_rejected_before_it_is_read_when_its_length_is_too_large() -> None:
    with pytest.raises(ProtocolError, match="at most 67108864"):
        FrameDecoder().feed(struct.pack(">IB", protocol.MAX_FRAME_BYTES + 1, 1))


@pytest.mark.parametrize(
    "message",
    [
        _RUN,
        protocol.Hello(1, "0" * 32, 1.5),
        protocol.Kill(_CLAIM, 0),
        protocol.Deadline(1e6),
        protocol.Credit(_CLAIM, 5),
        protocol.Shutdown("why"),
        protocol.Ended(_CLAIM, "exit", None, 9, 0.1, 0.01, 5, 0, None),
        protocol.Refused(_CLAIM, "job", "what", None),
    ],
    ids=lambda one: type(one).__name__,
)
def test_message_is_unchanged_when_it_is_encoded_and_decoded(message: protocol.Message) -> None:
    (one,) = protocol.FrameDecoder().feed(protocol.encode(message))
    assert protocol.decode(*one) == message


def test_bytes_and_claim_are_unchanged_when_they_are_encoded_and_decoded() -> None:
    (one,) = protocol.FrameDecoder().feed(
        protocol.encode_bytes(FrameKind.OUTPUT, _CLAIM, b"\0\xff")
    )
    assert one.kind == FrameKind.OUTPUT
    assert protocol.decode_bytes(one.payload) == (_CLAIM, b"\0\xff")


def test_field_is_ignored_when_it_is_unknown() -> None:
    assert protocol.decode(FrameKind.SHUTDOWN, b'{"why": null, "mood": 1}') == protocol.Shutdown(
        None
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"claim": "x"}, "Start.claim is 'x'"),
        ({"argv": []}, "Start.argv is \\[\\], not list\\[str\\]"),
        ({"argv": "ls"}, "Start.argv"),
        ({"environment": {"A": 1}}, "Start.environment"),
        ({"window_bytes": True}, "Start.window_bytes is True, not int"),
        ({"window_bytes": -1}, "Start.window_bytes is -1"),
        ({"timeout": "1"}, "Start.timeout is '1', not float | None"),
        ({"grace": None}, "Start.grace is None, not float"),
        ({"outlives_deadline": 1}, "Start.outlives_deadline is 1, not bool"),
    ],
)
def test_field_is_named_when_its_value_is_wrong(change: dict[str, Any], words: str) -> None:
    fields = {name: getattr(_RUN, name) for name in _RUN.__slots__} | change
    with pytest.raises(ProtocolError, match=words):
        protocol.decode(FrameKind.START, json.dumps(fields).encode())


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        (99, b"{}", "version 1 has no message of kind 99"),
        (FrameKind.SHUTDOWN, b"{", "Shutdown is not JSON"),
        (FrameKind.SHUTDOWN, b"[]", "Shutdown is not a JSON object"),
        (FrameKind.DEADLINE, b'{"at": NaN}', "Deadline.at"),
    ],
)
def test_payload_is_rejected_when_it_is_not_a_message(
    kind: int, payload: bytes, words: str
) -> None:
    with pytest.raises(ProtocolError, match=words):
        protocol.decode(kind, payload)
    with pytest.raises(ProtocolError, match="too few for a claim"):
        protocol.decode_bytes(b"short")
