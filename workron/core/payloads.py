"""How a value that people or jobs wrote becomes the JSON that is kept. Called by the stores.

Both dialects keep this text, and neither rewrites it: a number is given back as it came. What the
models have let in is worded in a tenth of the time: its numbers are finite, its characters whole.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_NUL: Final = "\\u0000"
_QUICK: Final = msgspec.json.Encoder()
_IN_ORDER: Final = msgspec.json.Encoder(order="sorted")


def to_json(value: Any) -> str:
    """Word a value, or raise StoreDataError if there is no JSON of it that every store keeps."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        raise _refusal("has half of a surrogate pair; strings are of whole characters") from None
    except RecursionError:
        raise _refusal("is nested too deeply") from None
    except (TypeError, ValueError) as cause:
        raise _refusal(f"is no JSON: {cause}") from None
    if _NUL in text.replace("\\\\", ""):
        raise _refusal("has a NUL character; leave it out or encode it")
    return text


def models_to_json(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """Word what models gave, each by itself."""
    try:
        text = _QUICK.encode_lines(values).decode()
    except OverflowError:
        # It is of 64 bits, and integers may be longer.
        return list(map(to_json, values))
    return text.split("\n")[:-1]


def canonical_json(value: Mapping[str, Any]) -> bytes:
    """Word what a model gave so that equal values have equal texts, whatever their order is."""
    try:
        return _IN_ORDER.encode(value)
    except OverflowError:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _refusal(what: str) -> errors.StoreDataError:
    return errors.StoreDataError(f"a value that is to be stored {what}")


MAX_INPUT_BYTES: Final = 1024 * 1024


def inputs_fit(text: str | None) -> tuple[Mapping[str, Any] | None, bool]:
    """Parse the inputs, or say that they are too large to be given."""
    if text is None:
        return None, False
    if len(text.encode()) > MAX_INPUT_BYTES:
        return None, True
    try:
        return json.loads(text), False
    except (RecursionError, ValueError):
        # Results stand one level deeper here than where they were read; too deep is too large.
        return None, True


MAX_STREAM_BYTES: Final = 64 * 1024 * 1024
"""Of one attempt, all pieces together: a database is no disk for logs, and who asks for the output
of a job is given all of it at once."""

MAX_CHUNKS: Final = 16_384
"""Of one attempt: the store adds their sizes up with each one that comes."""

MAX_CHUNK_BYTES: Final = 1024 * 1024
"""Of one piece."""

CHUNKS_PER_READ: Final = 64
"""So many are given to who reads them one after the other."""


def join_output(parts: Iterable[bytes], last: int | None) -> bytes:
    """Put the end of an output together, and cut it to its last bytes."""
    whole = b"".join(parts)
    return whole if last is None else whole[max(0, len(whole) - last) :]
