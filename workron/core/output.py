"""What is stored of one attempt's output while it runs: the bounds, and how it is put together.

Read by the models, by the stores, which hold every worker to them, and by the worker itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

STREAM_BYTES: Final = 64 * 1024 * 1024
"""Of one attempt, all pieces together: a database is no disk for logs, and who asks for the output
of a job is given all of it at once."""

PIECES: Final = 16_384
"""Of one attempt: the store adds their sizes up with each one that comes."""

PIECE_BYTES: Final = 1024 * 1024
"""Of one piece."""

PIECES_AT_ONCE: Final = 64
"""So many are given to who reads them one after the other."""


def joined(parts: Iterable[bytes], last: int | None) -> bytes:
    """Put the end of an output together, and cut it to its last bytes."""
    whole = b"".join(parts)
    return whole if last is None else whole[max(0, len(whole) - last) :]
