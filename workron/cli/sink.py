"""Where the bytes of a job go: into a pipe as they are, onto a terminal as text that does no harm.

Made by `output`.
"""

from __future__ import annotations

import codecs
import contextlib
import sys
from typing import TYPE_CHECKING, Final, Protocol

import typer

from workron.scheduling import tail

if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPE: Final = "\x1b"
_LONGEST: Final = 4096
"""Of what is held back until a sequence in it can be seen to its end."""


class Sink(Protocol):
    """Takes what comes, and shows it at once."""

    def write(self, data: bytes) -> None:
        """Take what comes next."""


@contextlib.contextmanager
def sink() -> Iterator[Sink]:
    """Write to standard output."""
    if not sys.stdout.isatty():
        yield _Pipe()
        return
    terminal = _Terminal()
    yield terminal
    terminal.end()


class _Pipe:
    def write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


class _Terminal:
    """Text, without what a terminal would obey, also where that comes in two pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self._is_line_open = False

    def write(self, data: bytes) -> None:
        self._show(self._decoder.decode(data))

    def end(self) -> None:
        """Show what was held back, and leave the cursor where the shell wants it."""
        self._show(self._decoder.decode(b"", final=True), is_last=True)
        if self._is_line_open:
            typer.echo()

    def _show(self, text: str, *, is_last: bool = False) -> None:
        text = self._held + text
        # A sequence ends with its line at the latest, for it is taken apart there.
        begun = text.find(_ESCAPE, text.rfind("\n") + 1)
        cut = len(text) if is_last or begun < 0 or len(text) - begun > _LONGEST else begun
        self._held = text[cut:]
        if shown := tail.plain(text[:cut]):
            self._is_line_open = not shown.endswith("\n")
            typer.echo(shown, nl=False)
