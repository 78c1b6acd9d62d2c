"""Progress as plain lines, one for each end: what a run prints where there is no terminal.

Made by `run`, called by `performance` with each look. The lines of one look are written at once:
each write costs a worker of the same process its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workron.cli import words

if TYPE_CHECKING:
    from collections.abc import Callable

    from workron.cli.feed import Look
    from workron.store.protocol import JobRow, RootRow


class Lines:
    """Writes what each look brought."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def show(self, look: Look) -> None:
        """Print a line for each job that has ended, or failed and is tried again."""
        lines = [_ended(root, row, look.span(row).seconds) for root, row in look.ended]
        # Nothing that waits for them has ended, but what they have waited for may just have.
        lines += [
            f"{'Retrying':<9}  {words.path(root, row)}  {words.failures(row)}"
            for root, row in look.failing
        ]
        if lines:
            self._write("\n".join(lines))

    def say(self, text: str) -> None:
        """Print a line about the run itself."""
        self._write(text)


def _ended(root: RootRow, row: JobRow, seconds: float | None) -> str:
    parts = [f"{row.state:<9}", words.path(root, row)]
    parts += [] if seconds is None else [words.span(seconds)]
    parts += [words.why(row)] if words.why(row) else []
    return "  ".join(parts)
