"""Terminal output that all commands share: jobs, durations, reasons, objects, and raw job output.

Output of a job goes unchanged to a pipe. On a terminal, `open_sink` removes control sequences,
also those that arrive in two pieces, so that no job can move the cursor or set the title.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any, Final

import typer

from workron.core import printable
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.scheduling import job_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from workron.store.api import ReadStore
    from workron.store.types import JobRow, RunRow


_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
_TAIL_BYTES: Final = 4096

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
"""States that may need attention."""


def job_path(run: RunRow, row: JobRow) -> str:
    """Format a job as commands accept it: `hello`, `etl/load`, `etl/transform/3`."""
    if row.job == run.run:
        return run.name
    return f"{run.name}/{row.name}" + ("" if row.index is None else f"/{row.index}")


def seconds(seconds: float) -> str:
    """Format a duration: `3.2 s`, `4:05 min`, `1:30 h`."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), _MINUTE)
    if seconds < _HOUR:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // _MINUTE}:{minutes % _MINUTE:02} h"


def failures(row: JobRow) -> str:
    """Format how often a job has failed."""
    return "failed once" if row.failures == 1 else f"failed {row.failures} times"


def age(since: datetime, now: datetime) -> str:
    """Format the time since then in one unit, as kubectl does."""
    seconds = max(0, int((now - since).total_seconds()))
    for unit, size in (("d", _DAY), ("h", _HOUR), ("m", _MINUTE)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def reason(row: JobRow) -> str:
    """Explain a job's state in a few words; empty if the state says it all."""
    if row.kind is not Kind.JOB and row.reason is Reason.UPSTREAM:
        return ""
    if row.message:
        return printable.line(row.message) + (f" ({row.reason})" if row.reason else "")
    return _REASONS.get(row.reason, str(row.reason)) if row.reason else ""


def last_lines(output: bytes, lines: int) -> list[str]:
    """Return the last lines of an output, without control sequences."""
    return printable.tail(output, _TAIL_BYTES).splitlines()[-lines:]


def ignored_pool(name: str) -> str:
    """Explain that a WorkerPool has no effect outside a cluster."""
    return (
        f"workerpool/{name} ignored: only the controller in a cluster creates worker pods, with"
        " their image, slots and env"
    )


def command(spec: Mapping[str, Any]) -> str:
    """Format a spec's command as one line: its first."""
    if "argv" in spec:
        return printable.line(shlex.join(map(str, spec["argv"])))
    first, *rest = str(spec.get("command", "")).strip().splitlines() or [""]
    return printable.line(first) + (" …" if rest else "")


_REASONS: Final[Mapping[Reason | None, str]] = {
    Reason.UPSTREAM: "waiting for upstream jobs",
    Reason.BACKOFF: "waiting to be retried",
    Reason.SCHEDULED: "waiting for its start time",
    Reason.SUSPENDED: "suspended",
    Reason.AWAITING_PROOF: "waiting for proof that a lost attempt is dead",
    Reason.MEMBER_FAILED: "one of its jobs failed",
    Reason.UPSTREAM_FAILED: "an upstream job failed",
    Reason.UPSTREAM_CANCELLED: "an upstream job was cancelled",
    Reason.NOT_NEEDED: "not needed",
    Reason.DEADLINE_EXCEEDED: "deadline exceeded",
    Reason.WORKER_LOST: "lost too many workers",
}


async def print_objects(reader: ReadStore, runs: Sequence[RunRow]) -> None:
    """Print the objects of runs as JSON, in the shape of their manifests."""
    items = [item for run in runs for item in await job_view.run_objects(reader, run)]
    typer.echo(as_document({"items": items}))


def as_document(value: Any, *, is_yaml: bool = False) -> str:
    """Return a value as JSON or YAML with indents."""
    if is_yaml:
        from workron.cli import yaml_writer

        return yaml_writer.dump(value).rstrip("\n")
    return json.dumps(value, indent=2)


_ESCAPE: Final = "\x1b"
_MAX_BUFFERED: Final = 4096
"""Characters kept back until a control sequence in them is complete."""


@contextlib.contextmanager
def open_sink() -> Iterator[Callable[[bytes], None]]:
    """Yield a function that writes output of a job: raw to a pipe, filtered to a terminal."""
    if not sys.stdout.isatty():
        yield _write_to_pipe
        return
    terminal = TerminalFilter()
    yield lambda data: typer.echo(terminal.filter(data), nl=False)
    typer.echo(terminal.end(), nl=False)


def _write_to_pipe(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


class TerminalFilter:
    """Makes text without control sequences of output that arrives in pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._buffered = ""
        self._is_line_open = False

    def filter(self, data: bytes) -> str:
        """Return what can be shown after this piece."""
        return self._filter_text(self._decoder.decode(data))

    def end(self) -> str:
        """Return what is buffered, and the end of an open line."""
        text = self._filter_text(self._decoder.decode(b"", final=True), is_last=True)
        return text + "\n" * self._is_line_open

    def _filter_text(self, text: str, *, is_last: bool = False) -> str:
        text = self._buffered + text
        # A control sequence ends at the end of its line at the latest.
        start = text.find(_ESCAPE, text.rfind("\n") + 1)
        cut = len(text) if is_last or start < 0 or len(text) - start > _MAX_BUFFERED else start
        self._buffered = text[cut:]
        if shown := printable.strip_control(text[:cut]):
            self._is_line_open = not shown.endswith("\n")
        return shown
