"""`workron wait`: until runs have ended."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import TYPE_CHECKING, Annotated, Final

import typer

from workron.cli import exit_codes, opening, options, reference, summary, words
from workron.core import errors
from workron.scheduling import wait as scheduling

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from workron.store.protocol import JobRow, RootRow

_LAST_LOOK_SECONDS: Final = 5.0


def wait(
    names: Annotated[list[str], typer.Argument(metavar="[KIND/][NAMESPACE/]NAME...")],
    store: options.Store = None,
    namespace: options.Namespace = "default",
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Give up after 30s, 5m, 1h30m.")
    ] = None,
) -> None:
    """Wait until all have ended; exits with 1 if one went wrong, 124 if it took too long.

    A store that is away, as while its server restarts, is asked again: until the timeout is over,
    or for 5 minutes if there is none. It exits with 5 if the store is still away then.
    """
    url = options.lasting(store)
    wanted = [reference.parse(name) for name in names]
    limit = None if timeout is None else options.duration("--timeout", timeout)
    raise typer.Exit(opening.carry_out(_wait(url, namespace, wanted, limit)))


async def _wait(
    url: str, namespace: str, wanted: Sequence[reference.Reference], limit: timedelta | None
) -> int:
    outage = opening.outage(limit or opening.LONG)
    try:
        async with asyncio.timeout(None if limit is None else limit.total_seconds()):
            async with opening.opened_patiently(url, outage) as store:
                roots = [
                    await outage.bear(functools.partial(reference.find_root, store, namespace, one))
                    for one in wanted
                ]
                rows = await scheduling.wait(store, [root.root for root in roots], outage)
    except TimeoutError:
        return await _stop_waiting(url, namespace, wanted, is_away=outage.is_on)
    _tell(roots, rows)
    return summary.exit_code(rows)


async def _stop_waiting(
    url: str, namespace: str, wanted: Sequence[reference.Reference], *, is_away: bool
) -> int:
    """Say how things stand when the time is over, unless there is nobody to ask."""
    if is_away:
        typer.echo("the time to wait is over, and the store is away", err=True)
        return exit_codes.AWAY
    typer.echo("the time to wait is over", err=True)
    with contextlib.suppress(TimeoutError, *errors.PASSING):
        async with asyncio.timeout(_LAST_LOOK_SECONDS), opening.opened(url) as store:
            roots = [await reference.find_root(store, namespace, one) for one in wanted]
            _tell(roots, await store.standing([root.root for root in roots]))
    return exit_codes.TIMED_OUT


def _tell(roots: Sequence[RootRow], rows: Sequence[JobRow]) -> None:
    for root, row in zip(roots, rows, strict=True):
        why = words.why(row)
        typer.echo(f"{root.kind.lower()}/{root.name} {row.state}" + (f": {why}" if why else ""))
