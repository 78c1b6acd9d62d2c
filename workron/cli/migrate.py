"""`workron migrate`: brings a store to this program's schema."""

from __future__ import annotations

import typer

from workron.cli import options, system
from workron.cli.opening import carry_out
from workron.store import connect


def migrate(store: options.Store = None) -> None:
    """Bring a store to the schema of this program; safe to run from many places at once."""
    url = options.lasting(store)
    applied = carry_out(connect.migrate(url, clock=system.CLOCK, rng=system.RNG))
    for name in applied:
        typer.echo(f"applied {name}")
    if not applied:
        typer.echo("nothing to do: the schema is up to date")
