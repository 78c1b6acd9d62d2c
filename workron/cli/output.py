"""`workron output`: what a job wrote, or writes."""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Self, TypeVar

import typer

from workron.cli import object_ref, options, stores
from workron.cli.formatting import open_sink
from workron.core import errors, states
from workron.core.plan import Kind
from workron.scheduling import job_view, wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from workron.cli.progress import ObservedRun
    from workron.core.ids import JobId
    from workron.store.api import ReadStore, Store
    from workron.store.types import ClaimedJob, JobRow, RunRow
    from workron_worker.executor import Done, OnOutput


def output(
    name: options.Member,
    store: options.Store = None,
    namespace: options.Namespace = "default",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
) -> None:
    """Print what a job wrote, or what is kept of it: byte by byte into a pipe.

    While it runs, that is what is stored by now; only a job with outputStreamBytes stores anything
    before its end. On a terminal everything is left out that the terminal would obey. With --follow
    a store that is away, as while its server restarts, is asked again for 5 minutes.
    """
    url = options.lasting(store)
    act = _follow if follow else _output
    stores.carry_out(act(url, namespace, object_ref.parse(name)))


async def _output(url: str, namespace: str, wanted: object_ref.Reference) -> None:
    async with stores.opened(url) as store:
        row = await _find(store, namespace, wanted)
        with open_sink() as out:
            out.write(await store.read_output(row.job))


async def _follow(url: str, namespace: str, wanted: object_ref.Reference) -> None:
    outage = stores.outage()
    async with stores.opened_patiently(url, outage) as store:
        row = await outage.bear(functools.partial(_find, store, namespace, wanted))
        spec = await outage.bear(functools.partial(store.get_spec, row.job)) or {}
        with open_sink() as out:
            if row.state in states.TERMINAL_STATES:
                out.write(await outage.bear(functools.partial(store.read_output, row.job)))
                return
            if not spec.get("outputStreamBytes"):
                _note("this job has no outputStreamBytes: its output is shown after each attempt")
            async for part in wait.follow(store, row.job, outage):
                if part.data:
                    out.write(part.data)
                else:
                    _note(f"attempt {part.attempt} began")


async def _find(store: Store, namespace: str, wanted: object_ref.Reference) -> JobRow:
    row = await object_ref.pick(store, await object_ref.find(store, namespace, wanted))
    if row.kind is not Kind.JOB:
        example = f"{wanted.text}/0" if row.kind is Kind.ARRAY else f"{wanted.text}/TASK"
        raise errors.InputError(
            f"{wanted.text!r} is no single job; name one of its jobs, like {example}"
        )
    return row


def _note(text: str) -> None:
    typer.echo(f"workron: {text}", err=True)


Answer = TypeVar("Answer")

_TICK_SECONDS: Final = 0.05
"""File systems read a clock that lags behind by a tick or two."""
_FAR_BEHIND: Final = 64 * 2**20
"""With so many bytes waiting to be written no further file is begun: what short commands leave
behind waits here, and nobody for it."""
_LONGEST: Final = 200
"""Of a file's name; the number of the job makes up for what is cut off."""


class OutputDir:
    """One folder, and the files in it; all that was heard is written when this is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[JobId, Path] = {}
        self._written: set[JobId] = set()
        self._thread = ThreadPoolExecutor(1, "output-dir")
        self._waiting = 0
        """How many bytes are not written yet."""
        self.trouble: str | None = None
        """The first thing that could not be written; a job never fails for it."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise errors.InputError(
                f"--output-dir {folder}: {error.strerror}; name a folder that you may write to"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def expect(self, root: RunRow, rows: Iterable[JobRow]) -> None:
        """Learn which jobs there are; of others nothing is written."""
        taken = Counter(self._paths.values())
        for row in rows:
            if row.kind is not Kind.JOB:
                continue
            name = job_view.object_name(root, row)
            path = self._folder / f"{name[:_LONGEST]}.log"
            if len(name) > _LONGEST or taken[path]:
                path = self._folder / f"{name[:_LONGEST]}-{row.job}.log"
            taken[path] += 1
            self._paths[row.job] = path

    def listener(self, claimed: ClaimedJob) -> OnOutput | None:
        """Begin the file of an attempt, and give what writes to it; None if it has no file."""
        path = self._paths.get(claimed.job)
        if path is None:
            return None
        if self._waiting > _FAR_BEHIND:
            self._written.discard(claimed.job)
            self._complain(path, "the folder takes in less than is written")
            return None
        self._written.add(claimed.job)
        self._thread.submit(self._write, path, b"", "wb")
        return functools.partial(self._append, path)

    def _append(self, path: Path, chunk: bytes, done: Done) -> None:
        self._waiting += len(chunk)

        def end(_: object) -> None:
            self._waiting -= len(chunk)
            done(len(chunk))

        self._in_turn(self._write, path, chunk, "ab").add_done_callback(end)

    def _in_turn(self, call: Callable[..., Answer], *given: object) -> asyncio.Future[Answer]:
        """Have the thread do it, after all else that it was to do; the answer is for this loop."""
        return asyncio.get_running_loop().run_in_executor(self._thread, call, *given)

    async def complete(self, reader: ReadStore, runs: Iterable[ObservedRun]) -> None:
        """Write what ended elsewhere, and return when everything is written."""
        for run in runs:
            for row in run.commands:
                if (
                    row.job not in self._written
                    and row.state in states.TERMINAL_STATES
                    and row.attempts
                ):
                    await self._fill_in(reader, row)
        await self._in_turn(_nothing)

    async def _fill_in(self, reader: ReadStore, row: JobRow) -> None:
        path = self._paths[row.job]
        began = (await job_view.last_run_time(reader, row)).began
        if began is None or not await self._in_turn(_is_written_since, path, began.timestamp()):
            await self._in_turn(self._write, path, await reader.read_output(row.job), "wb")

    def _write(self, path: Path, data: bytes, mode: str) -> None:
        try:
            with path.open(mode) as file:
                file.write(data)
        except OSError as error:
            self._complain(path, str(error.strerror))

    def _complain(self, path: Path, what: str) -> None:
        self.trouble = self.trouble or f"{path}: {what}"


def _nothing() -> None:
    """Be the last in turn."""


def _is_written_since(path: Path, began: float) -> bool:
    try:
        return path.stat().st_mtime > began - _TICK_SECONDS
    except OSError:
        return False
