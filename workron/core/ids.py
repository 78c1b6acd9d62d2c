"""The identities that pass between rooms, and how a job gets its own.

The jobs of one submission have consecutive ids: the run first, then its members. So a whole
workflow is a range of ids, and ids sort by the time of submission.
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
_MOMENT_BYTES: Final = 6
_CHANCE_BYTES: Final = 10


def mint_base(now: datetime, rng: Rng) -> JobId:
    """Draw the first id of a submission: 41 bits of milliseconds, then chance.

    Two submissions of one millisecond may overlap; a store finds it and gives the later one others.
    """
    milliseconds = int((now - _EPOCH).total_seconds() * 1000)
    return JobId(milliseconds << _RANDOM_BITS | rng.getrandbits(_RANDOM_BITS))


def minted_at(job: JobId) -> datetime:
    """Say when an id was drawn: of a job, about when it was submitted."""
    return _EPOCH + timedelta(milliseconds=job >> _RANDOM_BITS)


def mint_uuid(rng: Rng) -> UUID:
    """Draw a random UUID: a boot, a session."""
    return UUID(int=rng.getrandbits(128), version=4)


def mint_claims(now: datetime, rng: Rng, count: int) -> list[ClaimId]:
    """Draw claims: 48 bits of milliseconds, then chance.

    Sorted by time, those of a while stand beside each other in an index, however many came before.
    """
    moment = int(now.timestamp() * 1000).to_bytes(_MOMENT_BYTES, "big")
    drawn = rng.getrandbits(8 * _CHANCE_BYTES * count).to_bytes(_CHANCE_BYTES * count, "big")
    chances = (drawn[at : at + _CHANCE_BYTES] for at in range(0, len(drawn), _CHANCE_BYTES))
    return [ClaimId(UUID(bytes=moment + chance)) for chance in chances]
