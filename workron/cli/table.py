"""Prints rows of words in columns, ten thousand of them as readily as ten.

Called by `get`. No line is cut: a terminal wraps by itself, and who reads a pipe wants them whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer
from rich import cells
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron.core.states import State

_GAP: Final = "   "


def show(
    titles: Sequence[str], rows: Sequence[Sequence[str]], colours: Mapping[State, str]
) -> None:
    """Print it; a word that has a colour gets it, where there are colours."""
    widths = [max(map(cells.cell_len, column)) for column in zip(titles, *rows, strict=True)]
    console = Console(highlight=False)
    # Painted once each: rendering every line would take longer than all else together.
    painted = {str(word): _painted(console, word, colour) for word, colour in colours.items()}
    lines = [_painted(console, _line(titles, widths, {}), "dim")]
    lines += [_line(row, widths, painted) for row in rows]
    typer.echo("\n".join(lines), color=True)


def _line(row: Sequence[str], widths: Sequence[int], painted: Mapping[str, str]) -> str:
    padded = (
        painted.get(word, word) + " " * (width - cells.cell_len(word))
        for word, width in zip(row, widths, strict=True)
    )
    return _GAP.join(padded).rstrip()


def _painted(console: Console, text: str, colour: str) -> str:
    with console.capture() as captured:
        console.print(Text(text, style=colour), end="", soft_wrap=True)
    return captured.get()
