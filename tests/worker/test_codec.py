"""The quick way to write and read a message says what the careful one says."""

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


def _read(order: bytes) -> protocol.Message:
    [one] = protocol.FrameDecoder().feed(order)
    return protocol.decode(one.kind, one.payload)


def test_order_is_read_by_a_runner_as_it_was_meant() -> None:
    task = CommandTask(
        _CLAIM, ("printf", "ü"), {"A": "1"}, 1000, inputs={"up": [1]}, workdir="/work",
        timeout=timedelta(seconds=1.5), outlives_lease=True,
    )  # fmt: skip
    assert _read(runner_client.encode_start(task, 3.0, is_streamed=True)) == protocol.Start(
        _CLAIM.hex, ["printf", "ü"], {"A": "1"}, '{"up": [1]}', 1000, WINDOW_BYTES, "/work", 1.5,
        3.0, outlives_deadline=True,
    )  # fmt: skip


def test_order_of_a_shell_without_anything_else_is_read_as_it_was_meant() -> None:
    assert _read(
        runner_client.encode_start(CommandTask(_CLAIM, "true", {}, 5), 0.0, is_streamed=False)
    ) == protocol.Start(
        _CLAIM.hex, ["sh", "-c", "true"], {}, "{}", 5, 0, None, None, 0.0, outlives_deadline=False
    )


def test_byte_that_is_no_text_reaches_the_runner() -> None:
    order = _read(
        runner_client.encode_start(CommandTask(_CLAIM, ["\udcff"], {}, 5), 0.0, is_streamed=False)
    )
    assert isinstance(order, protocol.Start)
    assert order.argv == ["\udcff"]


@pytest.mark.parametrize("wrong", [None, "the result is too large: \udcff"])
def test_end_is_read_as_the_runner_meant_it(wrong: str | None) -> None:
    end = protocol.Ended(_CLAIM.hex, "exit", None, 9, 0.5, 1, 5, 0, wrong)
    [one] = protocol.FrameDecoder().feed(protocol.encode(end))
    assert runner_client.decode_message(one) == end


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b'{"claim": 7}', b"\xff", json.dumps({"claim": "x" * 32}).encode()],
)
def test_end_that_cannot_be_read_is_named(payload: bytes) -> None:
    with pytest.raises(ProtocolError, match="Ended"):
        runner_client.decode_message(Frame(FrameKind.ENDED, payload))
