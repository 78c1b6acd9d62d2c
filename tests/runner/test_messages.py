"""Messages come out as they went in; what is wrong with one is named."""

import json
from typing import Any

import pytest

from workron_runner import protocol
from workron_runner.protocol import FrameKind, ProtocolError

_CLAIM = "0123456789abcdef" * 2
_RUN = protocol.Start(
    claim=_CLAIM, argv=["a", "\udcff"], environment={"A": "ü"}, inputs="{}", output_limit_bytes=1,
    window_bytes=0, workdir=None, timeout=1.5, grace=1, outlives_deadline=True,
)  # fmt: skip


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
def test_message_comes_out_as_it_went_in(message: protocol.Message) -> None:
    (one,) = protocol.FrameDecoder().feed(protocol.encode(message))
    assert protocol.decode(*one) == message


def test_bytes_of_a_command_come_out_with_their_claim() -> None:
    (one,) = protocol.FrameDecoder().feed(
        protocol.encode_bytes(FrameKind.OUTPUT, _CLAIM, b"\0\xff")
    )
    assert one.kind == FrameKind.OUTPUT
    assert protocol.decode_bytes(one.payload) == (_CLAIM, b"\0\xff")


def test_field_that_is_not_known_is_let_be() -> None:
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
def test_field_that_is_wrong_is_named(change: dict[str, Any], words: str) -> None:
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
def test_payload_that_is_no_message_is_refused(kind: int, payload: bytes, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        protocol.decode(kind, payload)
    with pytest.raises(ProtocolError, match="too few for a claim"):
        protocol.decode_bytes(b"short")
