"""JSON as the stores keep it, and the limits on inputs and output.

Both dialects store this text unchanged, so a number comes back as it was written. Values from the
models need no checks (their numbers are finite, their strings valid) and take a tenth of the time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_NUL: Final = "\\u0000"
_ENCODER: Final = msgspec.json.Encoder()


def to_json(value: Any) -> str:
    """Encode a value; StoreDataError if not every store could keep it."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        raise _invalid("has half of a surrogate pair; use whole characters") from None
    except RecursionError:
        raise _invalid("is nested too deeply") from None
    except (TypeError, ValueError) as cause:
        raise _invalid(f"is not JSON: {cause}") from None
    if _NUL in text.replace("\\\\", ""):
        raise _invalid("has a NUL character; remove or encode it")
    return text


def models_to_json(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """Encode values from models, each to its own text."""
    try:
        text = _ENCODER.encode_lines(values).decode()
    except OverflowError:
        # msgspec encodes integers of 64 bits; these are longer.
        return list(map(to_json, values))
    return text.split("\n")[:-1]


def _invalid(what: str) -> errors.StoreDataError:
    return errors.StoreDataError(f"cannot store a value that {what}")


MAX_INPUT_BYTES: Final = 1024 * 1024


def inputs_fit(text: str | None) -> tuple[Mapping[str, Any] | None, bool]:
    """Return the parsed inputs, and whether they are too large to pass on."""
    if text is None:
        return None, False
    if len(text.encode()) > MAX_INPUT_BYTES:
        return None, True
    try:
        return json.loads(text), False
    except (RecursionError, ValueError):
        # Results are one level deeper here than where they were checked. Too deep is too large.
        return None, True


MAX_STREAM_BYTES: Final = 64 * 1024 * 1024
"""Streamed output of one attempt. A database is not a log store, and reading the output of a job
returns all of it at once."""

MAX_CHUNKS: Final = 16_384
"""Chunks of one attempt; the store sums their sizes for each new one."""

MAX_CHUNK_BYTES: Final = 1024 * 1024
"""Size of one chunk."""

CHUNKS_PER_READ: Final = 64
"""Chunks that one read returns."""


def join_output(parts: Iterable[bytes], last: int | None) -> bytes:
    """Join chunks of output, and keep the last bytes."""
    whole = b"".join(parts)
    return whole if last is None else whole[max(0, len(whole) - last) :]
