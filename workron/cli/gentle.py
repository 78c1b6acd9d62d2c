"""An executor before another one: what is given up is ended as softly as what is cancelled.

Made by `crew`: an agent that fails gives up all its commands at once, and that is no fault of
theirs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from workron.core.ids import ClaimId
    from workron_worker.executor import Ended, Executor, Task


class GentleExecutor:
    """Gives a command whose attempt is given up TERM and its grace, and waits for its end."""

    def __init__(self, executor: Executor, on_end: Callable[[ClaimId], object]) -> None:
        self._executor = executor
        self._on_end = on_end

    async def run(self, task: Task, on_output: Callable[[bytes], None]) -> Ended:
        """Run one attempt to its end; see the port."""
        running = asyncio.ensure_future(self._executor.run(task, on_output))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._executor.kill(task.claim)
            await asyncio.wait([running])
            raise
        finally:
            self._on_end(task.claim)

    def kill(self, claim: ClaimId) -> None:
        """End an attempt; see the port."""
        self._executor.kill(claim)

    def hold_until(self, at: float) -> None:
        """Say how long what runs may live; see the port."""
        self._executor.hold_until(at)

    def close(self) -> None:
        """Give everything back; see the port."""
        self._executor.close()
