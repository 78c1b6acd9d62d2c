"""`workron cancel`: ends runs."""

from __future__ import annotations

from typing import Annotated

import typer

from workron.cli import options, reference
from workron.cli.opening import carry_out, opened
from workron.core import errors
from workron.scheduling import cancel as scheduling


def cancel(
    names: Annotated[list[str], typer.Argument(metavar="[KIND/][NAMESPACE/]NAME...")],
    store: options.Store = None,
    namespace: options.Namespace = "default",
) -> None:
    """Cancel jobs and workflows: nothing of them starts any more, and what runs is ended."""
    url = options.lasting(store)
    wanted = [reference.parse(name) for name in names]
    carry_out(_cancel(url, namespace, wanted))


async def _cancel(url: str, namespace: str, wanted: list[reference.Reference]) -> None:
    """Cancel all that can be; those that had ended are complained of together, at the end."""
    refused: list[str] = []
    async with opened(url) as store:
        roots = [await reference.find_root(store, namespace, one) for one in wanted]
        for root in roots:
            try:
                await scheduling.cancel(store, root)
            except errors.StateError as error:
                refused.append(str(error))
            else:
                typer.echo(f"{root.kind.lower()}/{root.name} cancelled")
    if refused:
        raise errors.StateError("\n".join(refused))
