"""Writes what jobs print into files of a folder, in full and while they run.

Called by `run --output-dir`. A new attempt begins its file anew. What another process ran is
filled in at the end from what the store kept of it, unless that process wrote it here in full. A
thread writes, in the order in which things were heard: a folder may be slow, or hang, and the loop
that hears also beats for the lease.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

from workron.core import errors, states
from workron.core.plan import Kind
from workron.scheduling import present, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from workron.cli.feed import Run
    from workron.core.ids import JobId
    from workron.store.protocol import Claimed, JobRow, ReaderDoor, RootRow
    from workron_worker.executor import Done, OnOutput

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

    def expect(self, root: RootRow, rows: Iterable[JobRow]) -> None:
        """Learn which jobs there are; of others nothing is written."""
        taken = Counter(self._paths.values())
        for row in rows:
            if row.kind is not Kind.JOB:
                continue
            name = present.name_of(root, row)
            path = self._folder / f"{name[:_LONGEST]}.log"
            if len(name) > _LONGEST or taken[path]:
                path = self._folder / f"{name[:_LONGEST]}-{row.job}.log"
            taken[path] += 1
            self._paths[row.job] = path

    def listener(self, claimed: Claimed) -> OnOutput | None:
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

    async def complete(self, reader: ReaderDoor, runs: Iterable[Run]) -> None:
        """Write what ended elsewhere, and return when everything is written."""
        for run in runs:
            for row in run.commands:
                if row.job not in self._written and row.state in states.ENDS and row.attempts:
                    await self._fill_in(reader, row)
        await self._in_turn(_nothing)

    async def _fill_in(self, reader: ReaderDoor, row: JobRow) -> None:
        path = self._paths[row.job]
        began = (await span.last(reader, row)).began
        if began is None or not await self._in_turn(_is_written_since, path, began.timestamp()):
            await self._in_turn(self._write, path, await reader.output(row.job), "wb")

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
