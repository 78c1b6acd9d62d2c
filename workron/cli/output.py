"""`workron output`: what a job wrote, or writes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated

import typer

from workron.cli import opening, options, reference
from workron.cli.sink import sink
from workron.core import errors, states
from workron.core.plan import Kind
from workron.scheduling import follow as scheduling

if TYPE_CHECKING:
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
    before its end. On a terminal everything is left out that the terminal would obey. With --follow
    a store that is away, as while its server restarts, is asked again for 5 minutes.
    """
    url = options.lasting(store)
    act = _follow if follow else _output
    opening.carry_out(act(url, namespace, reference.parse(name)))


async def _output(url: str, namespace: str, wanted: reference.Reference) -> None:
    async with opening.opened(url) as store:
        row = await _find(store, namespace, wanted)
        with sink() as out:
            out.write(await store.output(row.job))


async def _follow(url: str, namespace: str, wanted: reference.Reference) -> None:
    outage = opening.outage()
    async with opening.opened_patiently(url, outage) as store:
        row = await outage.bear(functools.partial(_find, store, namespace, wanted))
        spec = await outage.bear(functools.partial(store.spec, row.job)) or {}
        with sink() as out:
            if row.state in states.ENDS:
                out.write(await outage.bear(functools.partial(store.output, row.job)))
                return
            if not spec.get("outputStream"):
                _note("this job has no outputStream: what is kept comes at the end of each attempt")
            async for part in scheduling.follow(store, row.job, outage):
                if part.data:
                    out.write(part.data)
                else:
                    _note(f"attempt {part.attempt} began")


async def _find(store: Store, namespace: str, wanted: reference.Reference) -> JobRow:
    row = await reference.pick(store, await reference.find(store, namespace, wanted))
    if row.kind is not Kind.JOB:
        example = f"{wanted.text}/0" if row.kind is Kind.ARRAY else f"{wanted.text}/TASK"
        raise errors.InputError(
            f"{wanted.text!r} is no single job; name one of its jobs, like {example}"
        )
    return row


def _note(text: str) -> None:
    typer.echo(f"workron: {text}", err=True)
