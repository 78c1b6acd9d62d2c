"""Tables of the commands that list things; lines can be added later, as `workron get -w` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import typer
from rich import cells
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_GAP: Final = "   "


class Table:
    """Prints lines below a heading; cells that are in `colors` get their color on a terminal."""

    def __init__(self, titles: Sequence[str], colors: Mapping[Any, str]) -> None:
        self._titles = titles
        self._console = Console(highlight=False)
        self._widths: list[int] = []
        # Each word is rendered once: Rich takes longer for every line than all the rest takes.
        self._styled = {
            str(word): styled(self._console, word, color) for word, color in colors.items()
        }

    def print(self, rows: Sequence[Sequence[str]]) -> None:
        """Print lines, the first time with the heading; columns keep at least their widths."""
        is_first = not self._widths
        columns = zip(self._titles, *rows, strict=True)
        widths = [max(map(cells.cell_len, column)) for column in columns]
        self._widths = [max(pair) for pair in zip(widths, self._widths or widths, strict=True)]
        lines = [styled(self._console, self._line(self._titles, {}), "dim")] if is_first else []
        lines += [self._line(row, self._styled) for row in rows]
        typer.echo("\n".join(lines), color=True)

    def _line(self, row: Sequence[str], styled: Mapping[str, str]) -> str:
        padded = (
            styled.get(word, word) + " " * (width - cells.cell_len(word))
            for word, width in zip(row, self._widths, strict=True)
        )
        return _GAP.join(padded).rstrip()


def styled(console: Console, text: str, color: str) -> str:
    """Return the text with the sequences of a color, if the console has colors."""
    with console.capture() as captured:
        console.print(Text(text, style=color), end="", soft_wrap=True)
    return captured.get()
