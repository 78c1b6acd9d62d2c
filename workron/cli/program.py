"""The `workron` program: its commands, and what becomes of the errors that they raise."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Final

import structlog
import typer

from workron.cli import (
    cancel,
    describe,
    exit_codes,
    get,
    graph,
    migrate,
    output,
    run,
    submit,
    validate,
    version,
    wait,
)
from workron.core import errors
from workron.scheduling import tail

if TYPE_CHECKING:
    from collections.abc import Callable

_DEBUG: Final = "WORKRON_DEBUG"
_MOST_PROBLEMS: Final = 50
_COMMANDS: Final[tuple[Callable[..., None], ...]] = (
    run.run,
    submit.submit,
    wait.wait,
    cancel.cancel,
    get.get,
    describe.describe,
    output.output,
    graph.graph,
    validate.validate,
    migrate.migrate,
    version.version,
)

app = typer.Typer(
    name="workron",
    help="Run command-line jobs and DAGs of them: here, or by way of a store.",
    epilog=exit_codes.HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in _COMMANDS:
    app.command()(_command)


def main() -> None:
    """Run the program; it ends with one of `exit_codes`."""
    is_debug = bool(os.environ.get(_DEBUG))
    _configure_log(is_debug=is_debug)
    try:
        app()
    except errors.WorkronError as error:
        if is_debug:
            raise
        _complain(str(error) + _hint(error))
        sys.exit(_code_of(error))
    except Exception as error:
        if is_debug:
            raise
        _complain(
            f"this is a fault of workron itself: {type(error).__name__}: {error};"
            f" set {_DEBUG}=1 to see where"
        )
        sys.exit(exit_codes.FAILED)


def _code_of(error: errors.WorkronError) -> int:
    if isinstance(error, errors.InputError):
        return exit_codes.BAD_INPUT
    if isinstance(error, errors.NotFoundError):
        return exit_codes.NOT_FOUND
    return exit_codes.FAILED


def _hint(error: errors.WorkronError) -> str:
    is_taken = isinstance(error, errors.NameTakenError)
    return "\n`workron cancel` ends it, the same `workron run` as before finishes it" * is_taken


def _complain(message: str) -> None:
    # Parts of a message come from files and databases: nothing of it may move the cursor.
    lines = tail.text(message.encode(errors="replace")).splitlines() or [""]
    for line in lines[:_MOST_PROBLEMS]:
        typer.echo(f"workron: {line}", err=True)
    if len(lines) > _MOST_PROBLEMS:
        typer.echo(f"workron: and {len(lines) - _MOST_PROBLEMS:,} more", err=True)


def _configure_log(*, is_debug: bool) -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if is_debug else logging.WARNING
        ),
        # Looked up at each line: the live display puts itself in the place of stderr.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
