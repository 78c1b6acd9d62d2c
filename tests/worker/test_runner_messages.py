"""The fast encoder and decoder of the agent agree with those of the protocol."""

import json
import uuid
from datetime import timedelta

import pytest

from workron.core.ids import ClaimId
from workron_runner import protocol
from workron_runner.protocol import Frame, FrameKind, ProtocolError
from workron_worker import runner_client
from workron_worker.executor import WINDOW_BYTES, CommandTask

_CLAIM = ClaimId(uuid.uuid4())


def _decode(start: bytes) -> protocol.Message:
    [frame] = protocol.FrameDecoder().feed(start)
    return protocol.decode(frame.kind, frame.payload)


def test_start_is_decoded_with_every_field() -> None:
    task = CommandTask(
        _CLAIM, ("printf", "ü"), {"A": "1"}, 1000, inputs={"up": [1]}, workdir="/work",
        timeout=timedelta(seconds=1.5), outlives_lease=True,
    )  # fmt: skip
    assert _decode(runner_client.encode_start(task, 3.0, is_streamed=True)) == protocol.Start(
        _CLAIM.hex, ["printf", "ü"], {"A": "1"}, '{"up": [1]}', 1000, WINDOW_BYTES, "/work", 1.5,
        3.0, outlives_deadline=True,
    )  # fmt: skip


def test_start_is_decoded_with_defaults_when_only_a_command_is_set() -> None:
    task = CommandTask(_CLAIM, "true", {}, 5)
    assert _decode(runner_client.encode_start(task, 0.0, is_streamed=False)) == protocol.Start(
        _CLAIM.hex, ["sh", "-c", "true"], {}, "{}", 5, 0, None, None, 0.0, outlives_deadline=False
    )


def test_start_keeps_bytes_that_are_not_utf8() -> None:
    task = CommandTask(_CLAIM, ["\udcff"], {}, 5)
    start = _decode(runner_client.encode_start(task, 0.0, is_streamed=False))
    assert isinstance(start, protocol.Start)
    assert start.argv == ["\udcff"]


@pytest.mark.parametrize("result_error", [None, "the result is too large: \udcff"])
def test_end_is_decoded_with_every_field(result_error: str | None) -> None:
    ended = protocol.Ended(_CLAIM.hex, "exit", None, 9, 0.5, 1, 5, 0, result_error)
    [frame] = protocol.FrameDecoder().feed(protocol.encode(ended))
    assert runner_client.decode_message(frame) == ended


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b'{"claim": 7}', b"\xff", json.dumps({"claim": "x" * 32}).encode()],
)
def test_error_names_the_message_when_an_end_cannot_be_decoded(payload: bytes) -> None:
    with pytest.raises(ProtocolError, match="Ended"):
        runner_client.decode_message(Frame(FrameKind.ENDED, payload))
