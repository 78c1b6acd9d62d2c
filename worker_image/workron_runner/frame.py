"""Frames on a stream: four bytes of length, big-endian, one byte of kind, and so many of payload.

Called by `messages` and `link`. The length counts the payload alone. Nothing larger than the limit
is ever taken in, so that neither side can be made to grow by the other.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

LIMIT_BYTES: Final = 64 * 1024 * 1024
_HEAD: Final = struct.Struct(">IB")


class ProtocolError(Exception):
    """The other side does not speak as agreed; nothing that it says can be trusted any more."""


class Frame(NamedTuple):
    """One frame as it came."""

    kind: int
    payload: bytes


def encode(kind: int, *parts: bytes) -> bytes:
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
            if length > LIMIT_BYTES:
                raise ProtocolError(f"a frame of {length} bytes; at most {LIMIT_BYTES} are taken")
            end = start + _HEAD.size + length
            if len(self._bytes) < end:
                break
            frames.append(Frame(kind, bytes(self._bytes[start + _HEAD.size : end])))
            start = end
        del self._bytes[:start]
        return frames
