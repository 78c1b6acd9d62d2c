"""Collects what commands write, so that a test waits for a word of theirs and not for a time."""

import asyncio

from workron_worker.executor import Acknowledge


class OutputCollector:
    """A listener that acknowledges at once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.received = bytearray()

    def __call__(self, data: bytes, acknowledge: Acknowledge) -> None:
        self.received += data
        acknowledge(len(data))
        self._event.set()

    async def wait(self) -> None:
        """Wait until something new was received."""
        await self._event.wait()
        self._event.clear()

    async def wait_for(self, word: bytes, count: int) -> None:
        """Wait until this word was received that often."""
        while self.received.count(word) < count:
            await self.wait()


def discard(data: bytes, acknowledge: Acknowledge) -> None:
    """Acknowledge output and forget it."""
    acknowledge(len(data))
