"""`OutputDir` writes the output of the jobs of a run to files.

A thread of its own writes the files of `workron run --output-dir`, in the order of arrival, so that
a slow disk delays no job. A file never fails a job: the first error is reported at the end.
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
from workron.scheduling import job_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from workron.cli.progress import ObservedRun
    from workron.core.ids import JobId
    from workron.store.api import ReadStore
    from workron.store.types import ClaimedJob, JobRow, RunRow
    from workron_worker.executor import Acknowledge, OnOutput


Answer = TypeVar("Answer")

_TICK_SECONDS: Final = 0.05
"""Clocks of file systems are up to two ticks behind."""
_MAX_PENDING_BYTES: Final = 64 * 2**20
"""With this many bytes still to be written, no new file is started."""
_MAX_NAME: Final = 200
"""Characters of a file name; a longer one is cut and gets the id of the job."""


class OutputDir:
    """Writes the output of jobs to files in a folder; leaving the block waits for all of it."""

    def __init__(self, folder: Path, max_pending_bytes: int = _MAX_PENDING_BYTES) -> None:
        self._folder = folder
        self._max_pending_bytes = max_pending_bytes
        self._paths: dict[JobId, Path] = {}
        self._written: set[JobId] = set()
        self._thread = ThreadPoolExecutor(1, "output-dir")
        self._pending = 0
        """Bytes that are not written yet."""
        self.error: str | None = None
        """The first error of writing a file, which never fails a job."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise errors.InputError(
                f"--output-dir {folder}: {error.strerror}; give a writable folder"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def expect(self, run: RunRow, rows: Iterable[JobRow]) -> None:
        """Choose a file for each job of a run; output of other jobs is not written."""
        taken = Counter(self._paths.values())
        for row in rows:
            if row.kind is not Kind.JOB:
                continue
            name = job_view.object_name(run, row)
            path = self._folder / f"{name[:_MAX_NAME]}.log"
            if len(name) > _MAX_NAME or taken[path]:
                path = self._folder / f"{name[:_MAX_NAME]}-{row.job}.log"
            taken[path] += 1
            self._paths[row.job] = path

    def listener(self, claimed: ClaimedJob) -> OnOutput | None:
        """Start the file of an attempt and return its writer; None if the job has no file."""
        path = self._paths.get(claimed.job)
        if path is None:
            return None
        if self._pending > self._max_pending_bytes:
            self._written.discard(claimed.job)
            self._record_error(path, "the disk is slower than the output of the jobs")
            return None
        self._written.add(claimed.job)
        self._thread.submit(self._write, path, b"", "wb")
        return functools.partial(self._append, path)

    def _append(self, path: Path, chunk: bytes, done: Acknowledge) -> None:
        self._pending += len(chunk)

        def end(_: object) -> None:
            self._pending -= len(chunk)
            done(len(chunk))

        self._on_thread(self._write, path, chunk, "ab").add_done_callback(end)

    def _on_thread(self, call: Callable[..., Answer], *given: object) -> asyncio.Future[Answer]:
        """Call on the thread, after all earlier calls."""
        return asyncio.get_running_loop().run_in_executor(self._thread, call, *given)

    async def complete(self, reader: ReadStore, runs: Iterable[ObservedRun]) -> None:
        """Write the output of jobs that ran elsewhere, and wait until everything is written."""
        for run in runs:
            for row in run.commands:
                has_run = row.attempts and row.state in states.TERMINAL_STATES
                if has_run and row.job not in self._written:
                    await self._fill_in(reader, row)
        # After all earlier calls of the thread.
        await self._on_thread(lambda: None)

    async def _fill_in(self, reader: ReadStore, row: JobRow) -> None:
        path = self._paths[row.job]
        began = (await job_view.last_run_time(reader, row)).began
        if began is None or not await self._on_thread(_is_written_since, path, began.timestamp()):
            await self._on_thread(self._write, path, await reader.read_output(row.job), "wb")

    def _write(self, path: Path, data: bytes, mode: str) -> None:
        try:
            with path.open(mode) as file:
                file.write(data)
        except OSError as error:
            self._record_error(path, str(error.strerror))

    def _record_error(self, path: Path, what: str) -> None:
        self.error = self.error or f"{path}: {what}"


def _is_written_since(path: Path, began: float) -> bool:
    try:
        return path.stat().st_mtime > began - _TICK_SECONDS
    except OSError:
        return False
