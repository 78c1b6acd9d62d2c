"""Watches a table: `get -w` and `top -w` print each line again that has changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from workron.cli import system_clock
from workron.cli.table import Table

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence

    from workron.scheduling.wait import StoreOutage
    from workron.store.api import Store


_POLL_SECONDS: Final = 1.0
_BATCH_SECONDS: Final = 0.2
_PAUSE_FACTOR: Final = 4
"""A table that takes long to read is read rarely."""


class Watch:
    """Prints a table, and then its lines that change; times out of `unsteady` columns do not count.

    While the store does not answer, it retries.
    """

    def __init__(
        self, titles: Sequence[str], colors: Mapping[Any, str], unsteady: Collection[str] = ()
    ) -> None:
        self._table = Table(titles, colors)
        self._is_steady = [title not in unsteady for title in titles]
        self._shown: dict[Hashable, list[str]] = {}

    async def run(
        self,
        store: Store,
        outage: StoreOutage,
        read: Callable[[], Awaitable[Mapping[Any, Sequence[str]]]],
        has_ended: Callable[[], Awaitable[bool]],
    ) -> None:
        """Print changes until `has_ended`."""
        is_over = False
        while True:
            began = system_clock.CLOCK.monotonic()
            self._show(await outage.retry(read))
            if is_over:
                return
            # One more read shows the ends between the two.
            is_over = await outage.retry(has_ended)
            if not is_over:
                cost = system_clock.CLOCK.monotonic() - began
                await store.wait_for_work(_POLL_SECONDS)
                await asyncio.sleep(max(_BATCH_SECONDS, _PAUSE_FACTOR * cost))

    def _show(self, lines: Mapping[Any, Sequence[str]]) -> None:
        changed = []
        for key, line in lines.items():
            steady = [cell for cell, is_in in zip(line, self._is_steady, strict=True) if is_in]
            if self._shown.get(key) != steady:
                changed.append(line)
            self._shown[key] = steady
        if changed:
            self._table.print(changed)
