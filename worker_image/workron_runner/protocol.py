"""What agent and runner say to each other, and how it stands in frames.

Called by both sides; docs/reference/runner-protocol.md says what each message means. A payload is a
JSON object, or, where bytes of a command are carried, the 16 bytes of its claim and then these.
"""

from __future__ import annotations

import dataclasses
import json
import re
import struct
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
_HEAD: Final = struct.Struct(">IB")


class ProtocolError(Exception):
    """The other side does not speak as agreed; nothing that it says can be trusted any more."""


class Frame(NamedTuple):
    """One frame as it came."""

    kind: int
    payload: bytes


def encode_frame(kind: int, *parts: bytes) -> bytes:
    """Put a frame together."""
    return b"".join((_HEAD.pack(sum(map(len, parts)), kind), *parts))


class Decoder:
    """Cuts a stream into frames, however its bytes arrive."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Take in the next bytes and give the frames that they complete."""
        self._bytes += data
        frames = []
        start = 0
        while len(self._bytes) - start >= _HEAD.size:
            length, kind = _HEAD.unpack_from(self._bytes, start)
            if length > MAX_FRAME_BYTES:
                raise ProtocolError(
                    f"a frame of {length} bytes; at most {MAX_FRAME_BYTES} are taken"
                )
            end = start + _HEAD.size + length
            if len(self._bytes) < end:
                break
            frames.append(Frame(kind, bytes(self._bytes[start + _HEAD.size : end])))
            start = end
        del self._bytes[:start]
        return frames


VERSION: Final = 1
CLAIM_BYTES: Final = 16


class Kind(IntEnum):
    """The byte behind the length: below 16 the agent's and those of both, then the runner's."""

    HELLO = 1
    RUN = 2
    KILL = 3
    DEADLINE = 4
    CREDIT = 5
    BYE = 6
    OUTPUT = 16
    KEPT = 17
    RESULT = 18
    ENDED = 19
    REFUSED = 20


@dataclass(frozen=True, slots=True)
class Hello:
    """The first word of each side."""

    version: int
    boot: str
    """Of the worker: 32 hexadecimal digits; names the runner's folder and marks its commands."""
    clock: float
    """CLOCK_BOOTTIME as the sender reads it."""


@dataclass(frozen=True, slots=True)
class Run:
    """Start a command."""

    claim: str
    argv: list[str]
    environment: dict[str, str]
    inputs: str
    """The text of the file that `$WORKRON_INPUTS` names."""
    output_bytes: int
    window: int
    """So many bytes of output may be under way to the agent; 0: none is wanted as it comes."""
    workdir: str | None
    timeout: float | None
    grace: float
    outlives_deadline: bool


@dataclass(frozen=True, slots=True)
class Kill:
    """End a command: TERM, and when the grace is over KILL; a grace of 0 is KILL at once."""

    claim: str
    grace: float


@dataclass(frozen=True, slots=True)
class Deadline:
    """What does not outlive the deadline is killed at that moment of CLOCK_BOOTTIME."""

    at: float


@dataclass(frozen=True, slots=True)
class Credit:
    """So many bytes of output have been dealt with; as many more may come."""

    claim: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A command is over, and nothing of it runs any more."""

    claim: str
    because: str
    """`itself`, `timeout`, `kill`, `deadline` or `memory`: what brought the end about."""
    exit_code: int | None
    signal: int | None
    seconds: float
    start_seconds: float
    """From when the runner took the order in until the command was started."""
    peak_bytes: int
    left_out: int
    """Bytes of output that are missing between the head and the tail that were kept."""
    result_error: str | None
    limit_bytes: int | None = None
    """Of memory, where that was the end of it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A command was not started."""

    claim: str
    fault: str
    """`job`: it would fail anywhere; `machine`: it might start elsewhere, or later; `late`: the
    deadline has passed."""
    what: str
    where: str | None


@dataclass(frozen=True, slots=True)
class Bye:
    """End everything and go; from the runner: it has, and why if it was not asked to."""

    why: str | None = None


Message = Hello | Run | Kill | Deadline | Credit | Ended | Refused | Bye

_CLASSES: Final[Mapping[int, type[Message]]] = {
    Kind.HELLO: Hello,
    Kind.RUN: Run,
    Kind.KILL: Kill,
    Kind.DEADLINE: Deadline,
    Kind.CREDIT: Credit,
    Kind.BYE: Bye,
    Kind.ENDED: Ended,
    Kind.REFUSED: Refused,
}


def _is_claim(one: Any) -> bool:
    return isinstance(one, str) and _CLAIM.fullmatch(one) is not None


_CLAIM: Final = re.compile(f"[0-9a-f]{{{2 * CLAIM_BYTES}}}")
# By how the type is written. Types are compared, not classes: a boolean is no number in JSON.
_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "str": lambda one: type(one) is str,
    "bool": lambda one: type(one) is bool,
    "int": lambda one: type(one) is int and one >= 0,
    "float": lambda one: type(one) in (int, float) and isfinite(one) and one >= 0,
    "list[str]": lambda one: type(one) is list and one != [] and set(map(type, one)) == {str},
    "dict[str, str]": lambda one: type(one) is dict and set(map(type, one.values())) <= {str},
}
_KINDS: Final = {one: kind for kind, one in _CLASSES.items()}


class _Field(NamedTuple):
    """What a field of a message has to be."""

    name: str
    type: str
    fits: Callable[[Any], bool]
    may_be_null: bool

    def of(self, given: Mapping[str, Any]) -> Any:
        """Give its value; ProtocolError if that is something else."""
        value = given.get(self.name)
        if (value is None and self.may_be_null) or self.fits(value):
            return value
        raise ProtocolError(f"{self.name} is {value!r:.80}, not {self.type}")


def _field(one: dataclasses.Field[Any]) -> _Field:
    written = str(one.type)
    fits = _is_claim if one.name == "claim" else _CHECKS[written.removesuffix(" | None")]
    return _Field(one.name, written, fits, written.endswith(" | None"))


# Read once: each job is a message there and a message back.
_FIELDS: Final = {one: [_field(field) for field in dataclasses.fields(one)] for one in _KINDS}


def encode(message: Message) -> bytes:
    """Write a message as a frame."""
    fields = {one.name: getattr(message, one.name) for one in _FIELDS[type(message)]}
    return encode_frame(_KINDS[type(message)], json.dumps(fields).encode())


def encode_bytes(kind: Kind, claim: str, data: bytes) -> bytes:
    """Write bytes of a command as a frame."""
    return encode_frame(kind, bytes.fromhex(claim), data)


def decode(kind: int, payload: bytes) -> Message:
    """Read a message; ProtocolError says what is wrong with it. Fields not known are let be."""
    one = _CLASSES.get(kind)
    if one is None:
        raise ProtocolError(f"a message of kind {kind} is not known in version {VERSION}")
    try:
        given = json.loads(payload)
    except ValueError as error:
        raise ProtocolError(f"{one.__name__} is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ProtocolError(f"{one.__name__} is not a JSON object")
    try:
        return one(*[field.of(given) for field in _FIELDS[one]])
    except ProtocolError as error:
        raise ProtocolError(f"{one.__name__}.{error}") from None


def decode_bytes(payload: bytes) -> tuple[str, bytes]:
    """Read a claim and the bytes of its command."""
    if len(payload) < CLAIM_BYTES:
        raise ProtocolError(f"{len(payload)} bytes are too few for a claim, which has 16")
    return payload[:CLAIM_BYTES].hex(), payload[CLAIM_BYTES:]
