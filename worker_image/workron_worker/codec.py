"""The messages that there is one of for each attempt, written and read quickly.

They are those of `workron_runner.messages`, which a runner reads and writes by the standard library
alone. What is not as it should be goes the careful way there, which says what is wrong with it.
Called by `runner_executor`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import msgspec

from workron_runner import frame, messages
from workron_runner.messages import Ended, Kind
from workron_worker.executor import WINDOW_BYTES

if TYPE_CHECKING:
    from workron_runner.frame import Frame
    from workron_runner.messages import Message
    from workron_worker.executor import Task

_WRITER: Final = msgspec.json.Encoder()
_READER: Final = msgspec.json.Decoder(Ended)


def order(task: Task, grace_seconds: float, *, is_heard: bool) -> bytes:
    """Write the order to run a task as a frame; `is_heard` has its output sent as it comes."""
    command, timeout = task.command, task.timeout
    fields = {
        "claim": task.claim.hex,
        "argv": ["sh", "-c", command] if isinstance(command, str) else command,
        "environment": task.environment,
        "inputs": json.dumps(task.inputs, ensure_ascii=False) if task.inputs else "{}",
        "output_bytes": task.output_bytes,
        "window": WINDOW_BYTES if is_heard else 0,
        "workdir": task.workdir,
        "timeout": None if timeout is None else timeout.total_seconds(),
        "grace": grace_seconds,
        "outlives_deadline": task.outlives_lease,
    }
    try:
        payload = _WRITER.encode(fields)
    except UnicodeEncodeError:
        # Half of a surrogate pair stands for a byte that is no UTF-8; this one writes that down.
        payload = json.dumps(fields).encode()
    return frame.encode(Kind.RUN, payload)


def read(one: Frame) -> Message:
    """Read a message; ProtocolError says what is wrong with it."""
    if one.kind == Kind.ENDED:
        try:
            return _READER.decode(one.payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
    return messages.decode(one.kind, one.payload)
