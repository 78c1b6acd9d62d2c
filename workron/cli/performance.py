"""The run itself: workers, maintainer and progress side by side, until all has ended or is stopped.

Called by `run`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from workron.cli import system
from workron.cli.feed import Feed
from workron.cli.interrupt import Interrupt
from workron.core import states
from workron.scheduling import wait
from workron.scheduling.maintain import Maintainer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from workron.cli.crew import Crew
    from workron.cli.feed import Look
    from workron.store.protocol import RootRow, Store


class View(Protocol):
    """What shows the progress."""

    def show(self, look: Look) -> None:
        """Show what is there now."""

    def say(self, text: str) -> None:
        """Show a line about the run itself."""


async def perform(
    store: Store, roots: Sequence[RootRow], crew: Crew, *, boot: UUID, view: View
) -> tuple[Look, int | None]:
    """Run until the roots have ended; answer how they stand, and a code if that was cut short."""
    feed = Feed(store, system.CLOCK, roots)
    interrupt = Interrupt(crew, view.say)
    working = asyncio.create_task(crew.run())
    tasks = [
        working,
        asyncio.create_task(wait.wait(store, system.CLOCK, [root.root for root in roots])),
        asyncio.create_task(Maintainer(store, system.CLOCK, boot).run(store.wait_for_work)),
        asyncio.create_task(_watch(feed, view)),
    ]
    try:
        with interrupt.listening():
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
            _finish(crew, view)
            await working
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    look = await feed.look()
    view.show(look)
    has_ended = all(run.row.state in states.ENDS for run in look.runs)
    return look, None if has_ended else interrupt.exit_code


def _finish(crew: Crew, view: View) -> None:
    if crew.running:
        view.say(f"waiting for {crew.running} more that run here")
    crew.drain()


async def _watch(feed: Feed, view: View) -> None:
    while True:
        view.show(await feed.look())
        await asyncio.sleep(feed.pause_seconds)
