"""`workron version`: which program this is."""

from __future__ import annotations

import typer

import workron


def version() -> None:
    """Print the version of this program."""
    typer.echo(f"workron {workron.__version__}")
