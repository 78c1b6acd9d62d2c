"""`workron migrate`: brings a store to this program's schema."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated

import typer

from workron.cli import opening, options, system
from workron.store import connect

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta


def migrate(
    store: options.Store = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Ask a server that is away again for 30s, 5m, 1h30m."
        ),
    ] = None,
) -> None:
    """Bring a store to the schema of this program; safe to run from many places at once."""
    url = options.lasting(store)
    limit = None if timeout is None else options.duration("--timeout", timeout)
    applied = opening.carry_out(_migrate(url, limit))
    for name in applied:
        typer.echo(f"applied {name}")
    if not applied:
        typer.echo("nothing to do: the schema is up to date")


async def _migrate(url: str, limit: timedelta | None) -> Sequence[str]:
    call = functools.partial(connect.migrate, url, clock=system.CLOCK, rng=system.RNG)
    return await (call() if limit is None else opening.outage(limit).bear(call))
