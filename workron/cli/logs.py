"""`workron logs`, also called `workron output`: the output of jobs.

A job keeps the output of each of its attempts. The bytes go to standard output as they are; notes
about attempts go to standard error.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Annotated

import typer

from workron.cli import formatting, object_ref, options, stores
from workron.core import errors, states
from workron.core.plan import Kind
from workron.core.states import State
from workron.scheduling import job_view, wait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from workron.cli.object_ref import ObjectReference
    from workron.core.ids import JobId
    from workron.store.api import ReadStore, Store
    from workron.store.types import AttemptRow, JobRow, RunRow


def logs(
    name: object_ref.JobArgument,
    store: options.Store,
    namespace: options.Namespace = "default",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new output until the job ends.")
    ] = False,
    attempt: Annotated[
        int | None,
        typer.Option(min=1, help="Print this attempt; default: the newest one with output."),
    ] = None,
    failed: Annotated[
        bool,
        typer.Option("--failed", help="Print all failed jobs of a workflow, with their names."),
    ] = False,
) -> None:
    """Print the output of a job, as much as the store keeps of it.

    A pipe gets the exact bytes; on a terminal, control sequences are removed. Jobs store output
    when an attempt ends, and jobs with outputStreamBytes also while they run. For a job with more
    than one attempt, standard error says which one is printed. With --follow, retries for 5 minutes
    while the store does not answer, as during a restart.
    """
    if follow + (attempt is not None) + failed > 1:
        raise errors.InputError("give only one of --follow, --attempt and --failed")
    if follow:
        asyncio.run(_follow(store, namespace, name))
    else:
        asyncio.run(_print(store, namespace, name, attempt, is_failed=failed))


async def _print(
    url: str, namespace: str, wanted: ObjectReference, attempt: int | None, *, is_failed: bool
) -> None:
    async with stores.opened(url) as store:
        if is_failed:
            await _print_failed(store, *await object_ref.find_job(store, namespace, wanted))
            return
        run, row = await _find(store, namespace, wanted)
        with formatting.open_sink() as write:
            await _print_job(store, run, row, attempt, write)


async def _print_job(
    store: ReadStore, run: RunRow, row: JobRow, attempt: int | None, write: Callable[[bytes], None]
) -> None:
    if attempt is None and row.attempts <= 1:
        write(await store.read_output(row.job))
        return
    attempt = await _newest_with_output(store, row) if attempt is None else attempt
    if attempt > row.attempts:
        raise errors.NotFoundError(
            f"{formatting.job_path(run, row)} has no attempt {attempt}; it has had {row.attempts}"
        )
    ended = {one.attempt: one for one in await store.list_attempts(row.job)}
    _note(f"attempt {attempt} of {row.attempts}, {_end_of(ended.get(attempt))}")
    async for data in _read_attempt(store, row.job, attempt):
        write(data)


async def _newest_with_output(store: ReadStore, row: JobRow) -> int:
    """Return the number of the newest attempt that has any output, or of the newest one."""
    for attempt in range(row.attempts, 0, -1):
        if await store.read_output_chunks(row.job, attempt):
            return attempt
    return row.attempts


def _end_of(attempt: AttemptRow | None) -> str:
    if attempt is None:
        return "which has not ended"
    ends = f"exit code {attempt.exit_code}" if attempt.exit_code else attempt.reason
    return attempt.outcome.lower() + (f": {ends}" if ends else "")


async def _read_attempt(store: ReadStore, job: JobId, attempt: int) -> AsyncIterator[bytes]:
    chunk = 0
    while chunks := await store.read_output_chunks(job, attempt, chunk):
        for one in chunks:
            yield one.data
        chunk = chunks[-1].chunk + 1


async def _print_failed(store: ReadStore, run: RunRow, row: JobRow) -> None:
    """Print each failed job of a run, a task or an array below a line with its name."""
    failed = job_view.failures_in_order(
        [one for one in await _commands(store, run, row) if one.state is State.FAILED]
    )
    if not failed:
        _note(f"no job of {formatting.job_path(run, row)} has failed")
    for number, one in enumerate(failed):
        with formatting.open_sink() as write:
            attempts = f", attempt {one.attempts}" if one.attempts > 1 else ""
            title = f"{formatting.job_path(run, one)}: {formatting.reason(one)}{attempts}"
            gap = "\n" if number else ""
            write(f"{gap}==> {title} <==\n".encode())
            output = await store.read_output(one.job)
            write(output if output.endswith(b"\n") or not output else output + b"\n")


async def _commands(store: ReadStore, run: RunRow, row: JobRow) -> Sequence[JobRow]:
    """Return the jobs of a group, or a job itself."""
    if row.kind is Kind.JOB:
        return [row]
    rows = [one for one in await store.list_jobs(run.run) if one.kind is Kind.JOB]
    return rows if row.job == run.run else [one for one in rows if one.group_id == row.job]


async def _follow(url: str, namespace: str, wanted: ObjectReference) -> None:
    outage = stores.outage()
    async with stores.opened_with_retry(url, outage) as store:
        run, row = await outage.retry(functools.partial(_find, store, namespace, wanted))
        spec = await outage.retry(functools.partial(store.get_spec, row.job)) or {}
        with formatting.open_sink() as write:
            if row.state in states.TERMINAL_STATES:
                await outage.retry(functools.partial(_print_job, store, run, row, None, write))
                return
            if not spec.get("outputStreamBytes"):
                _note("this job has no outputStreamBytes; its output appears when an attempt ends")
            if row.attempts > 1:
                _note(f"attempt {row.attempts}")
            async for part in wait.follow(store, row.job, outage):
                if part.data:
                    write(part.data)
                else:
                    _note(f"attempt {part.attempt} started")


async def _find(store: Store, namespace: str, wanted: ObjectReference) -> tuple[RunRow, JobRow]:
    run, row = await object_ref.find_job(store, namespace, wanted)
    if row.kind is not Kind.JOB:
        example = f"{wanted.text}/0" if row.kind is Kind.ARRAY else f"{wanted.text}/TASK"
        raise errors.InputError(
            f"{wanted.text!r} is not a single job; name one of its jobs, like {example}, or use"
            " --failed for the output of all failed ones"
        )
    return run, row


def _note(text: str) -> None:
    typer.echo(f"workron: {text}", err=True)
