"""The run itself: workers, maintainer and progress side by side, until all has ended or is stopped.

Called by `run`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, Protocol

from workron.cli import exit_codes, system
from workron.cli.interrupt import Interrupt
from workron.core import errors, states
from workron.scheduling import wait
from workron.scheduling.maintain import Maintainer
from workron.scheduling.outage import Outage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from workron.cli.crew import Crew
    from workron.cli.feed import Feed, Look
    from workron.store.protocol import Store

_MOST_NAMED: Final = 3


class View(Protocol):
    """What shows the progress."""

    def show(self, look: Look) -> None:
        """Show what is there now."""

    def say(self, text: str) -> None:
        """Show a line about the run itself."""


async def perform(
    store: Store, feed: Feed, crew: Crew, *, boot: UUID, view: View
) -> tuple[Look, int | None]:
    """Run until the roots have ended; answer how they stand, and a code if that was cut short."""
    interrupt = Interrupt(crew, view.say)
    outage = Outage(system.CLOCK, view.say)
    working = asyncio.create_task(crew.run())
    tasks = [
        working,
        asyncio.create_task(wait.wait(store, [root.root for root in feed.roots], outage)),
        asyncio.create_task(Maintainer(store, system.CLOCK, boot).run(store.wait_for_work)),
        asyncio.create_task(_watch(feed, outage, view)),
    ]
    try:
        with interrupt.listening():
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
            _finish(crew, interrupt, view)
            await working
    except errors.StoreError:
        await _give_up(crew, working)
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    look = await outage.bear(feed.look)
    view.show(look)
    has_ended = all(run.row.state in states.ENDS for run in look.runs)
    return look, None if has_ended else interrupt.exit_code or exit_codes.FAILED


def _finish(crew: Crew, interrupt: Interrupt, view: View) -> None:
    """Take no more; what still runs belongs to others, for all that was asked for has ended."""
    others = crew.names()
    if others and interrupt.exit_code is None:
        view.say(f"finishing {_listed(others)}, not of this run; Ctrl-C hands it back")
        interrupt.is_patient = False
    crew.drain()


async def _give_up(crew: Crew, working: asyncio.Task[None]) -> None:
    """End what runs as softly as a second Ctrl-C does, as far as the store lets us."""
    crew.kill()
    with contextlib.suppress(errors.StoreError):
        await working


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


async def _watch(feed: Feed, outage: Outage, view: View) -> None:
    while True:
        view.show(await outage.bear(feed.look))
        await asyncio.sleep(feed.pause_seconds)
