"""The messages between agent and runner, and their encoding in frames.

A frame is a length (4 bytes), a kind (1 byte) and a payload. A payload is a JSON object, or, for
bytes of a command, the 16 bytes of its claim followed by those bytes. Both sides use this module;
docs/reference/runner-protocol.md describes each message.
"""

from __future__ import annotations

import dataclasses
import json
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite
from typing import Any, Final, NamedTuple

VERSION: Final = 1
CLAIM_BYTES: Final = 16
MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
_HEADER: Final = struct.Struct(">IB")


class ProtocolError(Exception):
    """The peer broke the protocol; nothing else that it sends can be trusted."""


class Frame(NamedTuple):
    """One frame as it was received."""

    kind: int
    payload: bytes


def encode_frame(kind: int, *parts: bytes) -> bytes:
    """Encode a frame whose payload is the concatenation of `parts`."""
    return b"".join((_HEADER.pack(sum(map(len, parts)), kind), *parts))


class FrameDecoder:
    """Splits a byte stream into frames, however its bytes arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Append bytes and return the frames that they complete."""
        self._buffer += data
        frames = []
        start = 0
        while len(self._buffer) - start >= _HEADER.size:
            length, kind = _HEADER.unpack_from(self._buffer, start)
            if length > MAX_FRAME_BYTES:
                raise ProtocolError(
                    f"a frame of {length} bytes; at most {MAX_FRAME_BYTES} are allowed"
                )
            end = start + _HEADER.size + length
            if len(self._buffer) < end:
                break
            frames.append(Frame(kind, bytes(self._buffer[start + _HEADER.size : end])))
            start = end
        del self._buffer[:start]
        return frames


class FrameKind(IntEnum):
    """The kind byte: below 16 from the agent or from both sides, above from the runner."""

    HELLO = 1
    START = 2
    KILL = 3
    DEADLINE = 4
    CREDIT = 5
    SHUTDOWN = 6
    OUTPUT = 16
    CAPTURED = 17
    RESULT = 18
    ENDED = 19
    REFUSED = 20


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of each side."""

    version: int
    boot: str
    """Id of the worker process, 32 hexadecimal digits; names the runner's folder and is in the
    environment of its commands."""
    clock: float
    """CLOCK_BOOTTIME as the sender reads it."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start a command."""

    claim: str
    argv: list[str]
    environment: dict[str, str]
    inputs: str
    """Content of the file that `$WORKRON_INPUTS` names."""
    output_limit_bytes: int
    window_bytes: int
    """How much output may be in flight to the agent; 0: the agent does not want it as it comes."""
    workdir: str | None
    timeout: float | None
    grace: float
    outlives_deadline: bool


@dataclass(frozen=True, slots=True)
class Kill:
    """End a command: SIGTERM, and SIGKILL after `grace` seconds; with a grace of 0 at once."""

    claim: str
    grace: float


@dataclass(frozen=True, slots=True)
class Deadline:
    """Commands that do not outlive the deadline are killed at that time of CLOCK_BOOTTIME."""

    at: float


@dataclass(frozen=True, slots=True)
class Credit:
    """The agent has processed this many bytes of output; as many more may be sent."""

    claim: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A command has ended and none of its processes is left."""

    claim: str
    cause: str
    """`exit`, `timeout`, `kill`, `deadline` or `memory`."""
    exit_code: int | None
    signal: int | None
    seconds: float
    start_seconds: float
    """From receiving Start until the command was started."""
    peak_bytes: int
    omitted_bytes: int
    """Bytes of output that are missing between the captured head and tail."""
    result_error: str | None
    limit_bytes: int | None = None
    """The memory limit, if the cause is `memory`."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A command was not started."""

    claim: str
    fault: str
    """`job`: it would fail anywhere; `machine`: it might start elsewhere, or later; `late`: the
    deadline has passed."""
    message: str
    path: str | None


@dataclass(frozen=True, slots=True)
class Shutdown:
    """From the agent: end all commands and exit. From the runner: done, its last message."""

    reason: str | None = None
    """Why the runner exits without having been asked to."""


Message = Hello | Start | Kill | Deadline | Credit | Ended | Refused | Shutdown

_CLASSES: Final[Mapping[int, type[Message]]] = {
    FrameKind.HELLO: Hello,
    FrameKind.START: Start,
    FrameKind.KILL: Kill,
    FrameKind.DEADLINE: Deadline,
    FrameKind.CREDIT: Credit,
    FrameKind.SHUTDOWN: Shutdown,
    FrameKind.ENDED: Ended,
    FrameKind.REFUSED: Refused,
}
_KINDS: Final = {message: kind for kind, message in _CLASSES.items()}
_CLAIM: Final = re.compile(f"[0-9a-f]{{{2 * CLAIM_BYTES}}}")


# By the annotation's text. `type() is` and not `isinstance`: a boolean is not a number in JSON.
_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "str": lambda value: type(value) is str,
    "bool": lambda value: type(value) is bool,
    "int": lambda value: type(value) is int and value >= 0,
    "float": lambda value: type(value) in (int, float) and isfinite(value) and value >= 0,
    "list[str]": lambda value: (
        type(value) is list and value != [] and set(map(type, value)) == {str}
    ),
    "dict[str, str]": lambda value: type(value) is dict and set(map(type, value.values())) <= {str},
}


def _check_of(name: str, annotation: str) -> Callable[[Any], bool]:
    if name == "claim":
        return lambda value: type(value) is str and _CLAIM.fullmatch(value) is not None
    check = _CHECKS[annotation.removesuffix(" | None")]
    if annotation.endswith(" | None"):
        return lambda value: value is None or check(value)
    return check


# Name, annotation and check. Built once: an attempt needs at least one message in each direction.
_FIELDS: Final = {
    message: [
        (field.name, str(field.type), _check_of(field.name, str(field.type)))
        for field in dataclasses.fields(message)
    ]
    for message in _KINDS
}


def encode(message: Message) -> bytes:
    """Encode a message as a frame."""
    fields = {name: getattr(message, name) for name, _, _ in _FIELDS[type(message)]}
    return encode_frame(_KINDS[type(message)], json.dumps(fields).encode())


def encode_bytes(kind: FrameKind, claim: str, data: bytes) -> bytes:
    """Encode bytes of a command as a frame."""
    return encode_frame(kind, bytes.fromhex(claim), data)


def decode(kind: int, payload: bytes) -> Message:
    """Decode a message; ProtocolError says what is wrong with it. Unknown fields are ignored."""
    message = _CLASSES.get(kind)
    if message is None:
        raise ProtocolError(f"version {VERSION} has no message of kind {kind}")
    try:
        given = json.loads(payload)
    except ValueError as error:
        raise ProtocolError(f"{message.__name__} is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ProtocolError(f"{message.__name__} is not a JSON object")
    values: list[Any] = []
    for name, annotation, is_valid in _FIELDS[message]:
        value = given.get(name)
        if not is_valid(value):
            raise ProtocolError(f"{message.__name__}.{name} is {value!r:.80}, not {annotation}")
        values.append(value)
    return message(*values)


def decode_bytes(payload: bytes) -> tuple[str, bytes]:
    """Decode the claim and the bytes of its command."""
    if len(payload) < CLAIM_BYTES:
        raise ProtocolError(f"{len(payload)} bytes are too few for a claim of {CLAIM_BYTES}")
    return payload[:CLAIM_BYTES].hex(), payload[CLAIM_BYTES:]
