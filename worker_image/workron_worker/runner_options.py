"""What a runner is started with, beyond the connection to its agent.

Called by `runner_executor` and whoever makes one; docs/reference/runner-protocol.md says what each
option does and what it needs. A runner that may not do what it is asked to does not start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workron_runner.uids import Uids

if TYPE_CHECKING:
    from workron_runner.uids import Range


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """How commands are kept apart; by default they are not."""

    is_isolating: bool = False
    """Each in a Landlock domain of its own."""
    uids: Range | None = None
    """Each with a uid of its own out of these, which are nobody else's."""
    processes: int | None = None
    """So many processes and threads of one command at most; only together with uids."""

    def words(self) -> list[str]:
        """Write them for the command line of a runner."""
        return [
            *(["--isolate"] if self.is_isolating else []),
            *(["--uids", str(self.uids)] if self.uids else []),
            *(["--processes", str(self.processes)] if self.processes is not None else []),
        ]

    def end_all(self) -> None:
        """Kill what a runner that is gone left under its uids, and return when it is dead."""
        if self.uids is not None:
            Uids(self.uids).end_all()
