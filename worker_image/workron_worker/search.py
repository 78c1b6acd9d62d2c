"""Looks for a runner that comes when it comes: again and again, and not for ever.

Called by `runner_executor`. Whoever restarts runners may wait for minutes before he does it again,
which is no reason to give up; but an agent that finds none at all is better ended and seen.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from workron_worker.executor import StartError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workron_worker.meter import Meter

_log = structlog.get_logger(__name__)
_LONGEST_SECONDS: Final = 900
"""Kubernetes waits for 300 s at most before it starts a container again."""
_PAUSE_SECONDS: Final = 0.2


async def until_found(look: Callable[[], Awaitable[object]], meter: Meter) -> None:
    """Look until there is one; StartError, if there was none for too long."""
    loop = asyncio.get_running_loop()
    began, said = loop.time(), ""
    meter.awaits_runner("a runner is looked for")
    while True:
        try:
            await look()
        except StartError as error:
            if loop.time() - began >= _LONGEST_SECONDS:
                raise
            why = str(error)
        else:
            break
        if why != said:
            said = why
            meter.awaits_runner(why)
            _log.info("runner is waited for", why=why)
        await asyncio.sleep(_PAUSE_SECONDS)
    meter.found_runner()
    _log.info("runner found", waited_seconds=round(loop.time() - began, 3))
