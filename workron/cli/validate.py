"""`workron validate`: whether files would be taken, without a store."""

from __future__ import annotations

import typer

from workron.cli import files, options
from workron.cli.opening import carry_out, opened
from workron.core.plan import Kind
from workron.scheduling import submit


def validate(paths: options.Files, namespace: options.FileNamespace = None) -> None:
    """Check files as a submission would, and say what is in them."""
    request = files.request(paths, namespace)
    carry_out(_try(request))
    for plan in request.plans:
        commands = sum(node.kind is Kind.JOB for node in plan.nodes)
        count = f"{commands:,} jobs" if commands > 1 else "1 job"
        typer.echo(f"{plan.identity.kind.lower()}/{plan.identity.name} is valid: {count}")
    for _, name in sorted(request.pools):
        typer.echo(f"workerpool/{name} is valid")


async def _try(request: submit.Request) -> None:
    # Cycles over several Jobs are found where they meet, which is in a store.
    async with opened("memory:") as store:
        await submit.submit(store, request)
