"""Progress as plain lines, one for each end: what `run` prints where there is no terminal.

The lines of one look are written at once: each write costs a worker of the same process its time.
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
        lines = [
            f"{'Retrying':<9}  {words.path(root, row)}  {_failures(row)}"
            for root, row in look.failing
        ]
        lines += [_ended(root, row) for root, row in look.ended]
        if lines:
            self._write("\n".join(lines))

    def say(self, text: str) -> None:
        """Print a line about the run itself."""
        self._write(text)


def _failures(row: JobRow) -> str:
    return "failed once" if row.failures == 1 else f"failed {row.failures} times"


def _ended(root: RootRow, row: JobRow) -> str:
    seconds = words.took(row)
    parts = [f"{row.state:<9}", words.path(root, row)]
    parts += [] if seconds is None else [words.span(seconds)]
    parts += [words.why(row)] if words.why(row) else []
    return "  ".join(parts)
