"""An event loop on a thread of its own, for the proxies and queries of a test.

Tests are plain functions, because they wait for processes, which set no event here.
"""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

_T = TypeVar("_T")
_TIMEOUT_SECONDS = 60


class LoopThread:
    """Runs coroutines for other threads."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()

    def call(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(_TIMEOUT_SECONDS)


@contextlib.contextmanager
def running() -> Iterator[LoopThread]:
    """Yield a running loop; its tasks are cancelled at the end."""
    one = LoopThread()
    thread = threading.Thread(target=one.loop.run_forever, name="event-loop", daemon=True)
    thread.start()
    try:
        yield one
    finally:
        one.call(_cancel_others())
        one.loop.call_soon_threadsafe(one.loop.stop)
        thread.join()
        one.loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
