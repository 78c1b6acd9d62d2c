"""How jobs, times and ends are written on a terminal, the same in every command."""

from __future__ import annotations

import codecs
import contextlib
import shlex
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

import typer
from rich import cells
from rich.console import Console
from rich.text import Text

from workron.core import printable
from workron.core.plan import Kind
from workron.core.states import Reason, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from workron.store.types import JobRow, RunRow


_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400

STATE_COLORS: Final = {
    State.WAITING: "dim",
    State.QUEUED: "dim",
    State.RUNNING: "cyan",
    State.SUCCEEDED: "green",
    State.FAILED: "red",
    State.CANCELLED: "yellow",
    State.SKIPPED: "yellow",
}

TROUBLE: Final = frozenset({State.FAILED, State.CANCELLED})
"""States of a job that somebody may have to look at."""


def job_path(root: RunRow, row: JobRow) -> str:
    """Write a job as commands take it: `hello`, `etl/load`, `etl/transform/3`."""
    if row.job == root.run:
        return root.name
    return f"{root.name}/{row.name}" + ("" if row.index is None else f"/{row.index}")


def seconds(seconds: float) -> str:
    """Write a length of time, no finer than it matters."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), _MINUTE)
    if seconds < _HOUR:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // _MINUTE}:{minutes % _MINUTE:02} h"


def failures(row: JobRow) -> str:
    """Write how often a job has failed so far."""
    return "failed once" if row.failures == 1 else f"failed {row.failures} times"


def age(since: datetime, now: datetime) -> str:
    """Write how long ago something was, in one unit, as kubectl does."""
    seconds = max(0, int((now - since).total_seconds()))
    for unit, size in (("d", _DAY), ("h", _HOUR), ("m", _MINUTE)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def reason(row: JobRow) -> str:
    """Say in a few words why a job stands as it does; nothing if its state says it all."""
    if row.kind is not Kind.JOB and row.reason is Reason.UPSTREAM:
        return ""
    if row.message:
        return (
            f"{printable.line(row.message)} ({row.reason})"
            if row.reason
            else printable.line(row.message)
        )
    return _REASONS.get(row.reason, str(row.reason)) if row.reason else ""


def pool_left_alone(name: str) -> str:
    """Say that a WorkerPool among the files changes nothing here."""
    return (
        f"workerpool/{name} left alone: its pods, with their image, slots and env, are made in a"
        " cluster only"
    )


def command(spec: Mapping[str, Any]) -> str:
    """Write a spec's command on one line: the first of its own."""
    if "argv" in spec:
        return printable.line(shlex.join(map(str, spec["argv"])))
    first, *rest = str(spec.get("command", "")).strip().splitlines() or [""]
    return printable.line(first) + (" …" if rest else "")


_REASONS: Final[Mapping[Reason | None, str]] = {
    Reason.UPSTREAM: "waits for others",
    Reason.BACKOFF: "waits to be tried again",
    Reason.SCHEDULED: "waits for its time",
    Reason.SUSPENDED: "suspended",
    Reason.AWAITING_PROOF: "waits for proof that a lost attempt is dead",
    Reason.MEMBER_FAILED: "a job of it failed",
    Reason.UPSTREAM_FAILED: "a job that it depends on failed",
    Reason.UPSTREAM_CANCELLED: "a job that it depends on was cancelled",
    Reason.NOT_NEEDED: "not needed",
    Reason.DEADLINE_EXCEEDED: "its deadline passed",
    Reason.WORKER_LOST: "its workers vanished too often",
}


_GAP: Final = "   "


def print_table(
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


_ESCAPE: Final = "\x1b"
_LONGEST: Final = 4096
"""Of what is held back until a sequence in it can be seen to its end."""


class Sink(Protocol):
    """Takes what comes, and shows it at once."""

    def write(self, data: bytes) -> None:
        """Take what comes next."""


@contextlib.contextmanager
def open_sink() -> Iterator[Sink]:
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
        if shown := printable.strip_control(text[:cut]):
            self._is_line_open = not shown.endswith("\n")
            typer.echo(shown, nl=False)
