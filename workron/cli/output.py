"""`workron output`: what a job wrote, or writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from workron.cli import options, reference, system
from workron.cli.opening import carry_out, opened
from workron.cli.sink import sink
from workron.core import errors, states
from workron.core.plan import Kind
from workron.scheduling import follow as scheduling
from workron.scheduling.outage import Outage

if TYPE_CHECKING:
    from workron.cli.sink import Sink
    from workron.store.protocol import JobRow, Store


def output(
    name: options.Member,
    store: options.Store = None,
    namespace: options.Namespace = "default",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
) -> None:
    """Print what a job wrote, or what is kept of it: byte by byte into a pipe.

    While it runs, that is what is stored by now; only a job with outputStream stores anything
    before its end. On a terminal everything is left out that the terminal would obey.
    """
    url = options.lasting(store)
    carry_out(_output(url, namespace, reference.parse(name), follow=follow))


async def _output(url: str, namespace: str, wanted: reference.Reference, *, follow: bool) -> None:
    async with opened(url) as store:
        root = await reference.find(store, namespace, wanted)
        row = await reference.pick(store, root, wanted)
        if row.kind is not Kind.JOB:
            example = f"{wanted.text}/0" if row.kind is Kind.ARRAY else f"{wanted.text}/TASK"
            raise errors.InputError(
                f"{wanted.text!r} is no single job; name one of its jobs, like {example}"
            )
        with sink() as out:
            if follow and row.state not in states.ENDS:
                await _follow(store, row, out)
            else:
                out.write(await store.output(row.job))


async def _follow(store: Store, row: JobRow, out: Sink) -> None:
    spec = await store.spec(row.job) or {}
    if not spec.get("outputStream"):
        _note("this job has no outputStream: what is kept comes at the end of each attempt")
    async for part in scheduling.follow(store, row.job, Outage(system.CLOCK, _note)):
        if part.data:
            out.write(part.data)
        else:
            _note(f"attempt {part.attempt} began")


def _note(text: str) -> None:
    typer.echo(f"workron: {text}", err=True)
