"""The types of ids, and how each id is made.

The jobs of one run have consecutive ids: the run's own first, then its jobs. A workflow is a range
of ids, and ids sort by the time of submission.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NewType
from uuid import UUID

if TYPE_CHECKING:
    from workron.core.clock import Rng


JobId = NewType("JobId", int)
WorkerId = NewType("WorkerId", int)
ClaimId = NewType("ClaimId", UUID)
SessionKey = NewType("SessionKey", UUID)
Fence = NewType("Fence", int)

_EPOCH: Final = datetime(2025, 1, 1, tzinfo=UTC)
_RANDOM_BITS: Final = 22
_TIME_BYTES: Final = 6
_RANDOM_BYTES: Final = 10


def mint_base(now: datetime, rng: Rng) -> JobId:
    """Return the first id of a run: 41 bits of milliseconds, then random bits.

    Ids of two runs of the same millisecond may overlap; the store then draws again for the later.
    """
    milliseconds = int((now - _EPOCH).total_seconds() * 1000)
    return JobId(milliseconds << _RANDOM_BITS | rng.getrandbits(_RANDOM_BITS))


def minted_at(job: JobId) -> datetime:
    """Return when an id was made, which is about when its job was submitted."""
    return _EPOCH + timedelta(milliseconds=job >> _RANDOM_BITS)


def mint_uuid(rng: Rng) -> UUID:
    """Return a random UUID, for a boot or a session."""
    return UUID(int=rng.getrandbits(128), version=4)


def mint_claims(now: datetime, rng: Rng, count: int) -> list[ClaimId]:
    """Return claim ids: 48 bits of milliseconds, then random bits.

    They sort by time, so recent claims share a few pages of an index whatever its size.
    """
    time = int(now.timestamp() * 1000).to_bytes(_TIME_BYTES, "big")
    bits = rng.getrandbits(8 * _RANDOM_BYTES * count).to_bytes(_RANDOM_BYTES * count, "big")
    parts = (bits[at : at + _RANDOM_BYTES] for at in range(0, len(bits), _RANDOM_BYTES))
    return [ClaimId(UUID(bytes=time + part)) for part in parts]
