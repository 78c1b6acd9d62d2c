"""`workron output`: what a job wrote."""

from __future__ import annotations

import sys

import typer

from workron.cli import options, reference
from workron.cli.opening import carry_out, opened
from workron.core import errors
from workron.core.plan import Kind
from workron.scheduling import tail


def output(
    name: options.Member,
    store: options.Store = None,
    namespace: options.Namespace = "default",
) -> None:
    """Print what a job wrote, or what is kept of it: byte by byte into a pipe.

    On a terminal everything is left out that the terminal would obey.
    """
    url = options.lasting(store)
    data = carry_out(_output(url, namespace, reference.parse(name)))
    if sys.stdout.isatty():
        typer.echo(tail.text(data), nl=not data.endswith(b"\n"))
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


async def _output(url: str, namespace: str, wanted: reference.Reference) -> bytes:
    async with opened(url) as store:
        root = await reference.find(store, namespace, wanted)
        row = await reference.pick(store, root, wanted)
        if row.kind is not Kind.JOB:
            example = f"{wanted.text}/0" if row.kind is Kind.ARRAY else f"{wanted.text}/TASK"
            raise errors.InputError(
                f"{wanted.text!r} is no single job; name one of its jobs, like {example}"
            )
        return await store.output(row.job)
