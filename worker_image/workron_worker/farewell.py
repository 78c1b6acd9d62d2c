"""How a worker says goodbye to its store, and what is said when that is not heard.

Called by `loop` at its end. A goodbye spares others the wait for a lease and no more, so it is
tried once and not for long.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from workron.core import errors

if TYPE_CHECKING:
    from workron.core.ids import SessionKey
    from workron.store.protocol import WorkerDoor

_log = structlog.get_logger(__name__)
_SECONDS: Final = 1.0
_SECONDS_WHEN_AWAY: Final = 0.25
"""To a store that has just not answered."""


async def leave(
    door: WorkerDoor, key: SessionKey, worker: str, cause: BaseException | None = None
) -> bool:
    """Leave the store, after that error if there was one; tell whether that was heard."""
    is_away = isinstance(cause, errors.PASSING)
    try:
        async with asyncio.timeout(_SECONDS_WHEN_AWAY if is_away else _SECONDS):
            await door.leave(key)
    except (errors.StoreError, TimeoutError) as error:
        if cause is None:
            _log.info(
                "store does not hear the goodbye: the lease ends this worker's session",
                worker=worker,
                error=str(error) or "no answer in time",
            )
        return False
    return True


def first(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    """Give one error of several that came of the same cause: the group says no more to a user."""
    one = failed.exceptions[0]
    return first(one) if isinstance(one, BaseExceptionGroup) else one


def untold(cause: BaseException, held: int) -> BaseException:
    """Say beside the error what becomes of the claims that the store was not told about."""
    if not isinstance(cause, errors.PASSING):
        return cause
    jobs = "1 job" if held == 1 else f"{held} jobs"
    return type(cause)(
        f"{cause}; what this worker held ({jobs}) is taken back when its lease is over"
    )
