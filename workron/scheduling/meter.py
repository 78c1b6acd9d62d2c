"""The port through which a maintainer tells what it did, to be counted and judged elsewhere.

Called by `maintain`; filled by `workron.cli` where health is to be told.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Duty(StrEnum):
    """What moves jobs; each is the verb of the store that does it."""

    PROMOTE = "promote"
    SETTLE = "settle"
    REAP = "reap"
    REAP_ORPHANS = "reap_orphans"
    EXPIRE = "expire"


class Meter:
    """Hears of a maintainer; as it stands, it lets all of it be."""

    def round_over(self, *, is_elected: bool) -> None:
        """Hear that the store was asked who holds the office, and the holder's round was done."""

    def moved(self, duty: Duty, count: int) -> None:
        """Hear how many jobs one step of a duty has moved."""

    def reaped(self) -> None:
        """Hear that a worker was reaped."""

    def missed(self, count: int) -> None:
        """Hear how many jobs wait though all their upstreams have ended."""

    def gave_up(self, error: BaseException) -> None:
        """Hear that the maintainer has failed and does nothing any more."""


SILENT: Final = Meter()
