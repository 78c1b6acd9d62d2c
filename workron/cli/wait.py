"""`workron wait`: until runs have ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from workron.cli import exit_codes, options, reference, summary, system, words
from workron.cli.opening import carry_out, opened
from workron.scheduling import wait as scheduling

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta


def wait(
    names: Annotated[list[str], typer.Argument(metavar="[KIND/]NAME...")],
    store: options.Store = None,
    namespace: options.Namespace = "default",
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Give up after 30s, 5m, 1h30m.")
    ] = None,
) -> None:
    """Wait until all have ended; exits with 1 if one went wrong, 124 if it took too long."""
    url = options.lasting(store)
    wanted = [reference.parse_root(name) for name in names]
    limit = None if timeout is None else options.duration("--timeout", timeout)
    raise typer.Exit(carry_out(_wait(url, namespace, wanted, limit)))


async def _wait(
    url: str, namespace: str, wanted: Sequence[reference.Reference], limit: timedelta | None
) -> int:
    async with opened(url) as store:
        roots = [await reference.find(store, namespace, one) for one in wanted]
        try:
            async with asyncio.timeout(None if limit is None else limit.total_seconds()):
                rows = await scheduling.wait(store, system.CLOCK, [root.root for root in roots])
        except TimeoutError:
            typer.echo("the time to wait is over", err=True)
            return exit_codes.TIMED_OUT
        for root, row in zip(roots, rows, strict=True):
            why = words.why(row)
            typer.echo(f"{root.kind.lower()}/{root.name} {row.state}" + (f": {why}" if why else ""))
        return summary.exit_code(rows)
