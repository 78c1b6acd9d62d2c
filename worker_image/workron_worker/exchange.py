"""What an agent says to the store of its claims, and is given for it: ends for claims.

Called by `loop`. Ends and new claims go in one call. While one is under way many ends may have
gathered again; those go beside it, so that the store takes in and gives out at the same time.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.core.ids import ClaimId, SessionKey
    from workron.store.protocol import Claimed, End
    from workron_worker.ledger import Ledger
    from workron_worker.patience import Patience
    from workron_worker.surroundings import Surroundings

_PLENTY: Final = 200
"""So many ends are worth a call of their own."""


class Exchange:
    """One at a time, and one report beside it."""

    def __init__(self, around: Surroundings, ledger: Ledger, patience: Patience) -> None:
        self._around = around
        self._ledger = ledger
        self._patience = patience
        self._is_under_way = False
        self._has_plenty = asyncio.Event()
        self.told = 0
        """How many ends the last one had."""

    async def hand_back(self, key: SessionKey) -> None:
        """Release what somebody else is to run."""
        releases = self._ledger.take_releases()
        with self._ledger.telling(sum(map(len, releases.values()))):
            for lost, rights in releases.items():
                release = functools.partial(self._around.door.release, key, rights, lost)
                await self._patience.insist(release)
                self._around.meter.released(len(rights))
                self._ledger.forget(right.claim for right in rights)

    async def make(self, key: SessionKey, claims: Sequence[ClaimId]) -> Sequence[Claimed]:
        """Report all ends, and ask for claims under these ids, a slot each; give those granted."""
        ends = self._ledger.take_ends()
        self.told = len(ends)
        granted: Sequence[Claimed] = ()
        asked_at = self._around.clock.monotonic()
        self._is_under_way = True
        try:
            granted = await self._complete(key, ends, claims)
        finally:
            self._is_under_way = False
            self._around.slots.give(len(claims) - len(granted))
            self._ledger.forget(set(claims) - {claimed.claim for claimed in granted})
        if claims:
            seconds = self._around.clock.monotonic() - asked_at
            self._around.meter.claimed(len(granted), seconds)
        return granted

    def notice(self) -> None:
        """Note that there is an end more."""
        if self._ledger.ends >= _PLENTY:
            self._has_plenty.set()

    async def plenty(self) -> None:
        """Wait until there are many ends beside an exchange."""
        await self._has_plenty.wait()
        self._has_plenty.clear()

    async def report_beside(self, key: SessionKey) -> None:
        """Report many ends, if an exchange is under way and does not have them."""
        if self._is_under_way and self._ledger.ends >= _PLENTY:
            await self._complete(key, self._ledger.take_ends(), ())

    async def _complete(
        self, key: SessionKey, ends: Sequence[End], claims: Sequence[ClaimId]
    ) -> Sequence[Claimed]:
        call = functools.partial(self._call, key, ends, claims)
        try:
            with self._ledger.telling(len(ends)):
                return await self._patience.insist(call)
        finally:
            self._ledger.forget(end.claim for end in ends)

    async def _call(
        self, key: SessionKey, ends: Sequence[End], claims: Sequence[ClaimId]
    ) -> Sequence[Claimed]:
        if ends:
            completed = await self._around.door.complete(key, ends, claims)
            self._around.meter.reported(ends, completed.answers)
            return completed.claimed
        if claims:
            return await self._around.door.claim(key, claims)
        return ()
