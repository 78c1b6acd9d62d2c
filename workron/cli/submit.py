"""`workron submit`: hands files to a store, where workers find them, and leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from workron.cli import files, options, words
from workron.cli.opening import carry_out, opened
from workron.core import errors
from workron.scheduling import submit as scheduling
from workron.scheduling.submit import Effect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.scheduling.submit import Request, Submission


_WORDS: Final = {
    Effect.BEGUN: "submitted",
    Effect.NONE: "unchanged: it was submitted before and goes on",
    Effect.SUSPENDED: "suspended: what runs of it runs on, nothing new starts",
    Effect.RESUMED: "resumed",
    Effect.CANCELLED: "cancelled",
}


def submit(
    paths: options.Files,
    store: options.Store = None,
    namespace: options.FileNamespace = None,
) -> None:
    """Submit jobs and leave: what this acknowledges is never lost.

    All files are taken together, or none of them. An unfinished run of the same name and content
    is acknowledged as it is.
    """
    url = options.lasting(store)
    request = files.request(paths, namespace)
    if not request.plans and not request.pools:
        raise errors.InputError("there is nothing in these files to submit")
    for one in carry_out(_submit(url, request)):
        typer.echo(f"{one.identity.kind.lower()}/{one.identity.name} {_WORDS[one.effect]}")
    for _, name in sorted(request.pools):
        typer.echo(words.pool_left_alone(name))


async def _submit(url: str, request: Request) -> Sequence[Submission]:
    async with opened(url, may_create=True) as store:
        return await scheduling.submit(store, request)
