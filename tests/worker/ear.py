"""Hears what commands write, so that a test can wait for a word of theirs instead of a time."""

import asyncio

from workron_worker.executor import Acknowledge


class Ear:
    """Takes in chunks; heard and waited for on one loop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.heard = bytearray()

    def __call__(self, chunk: bytes, done: Acknowledge) -> None:
        self.heard += chunk
        done(len(chunk))
        self._event.set()

    async def wait(self) -> None:
        """Wait until something new was heard."""
        await self._event.wait()
        self._event.clear()
