"""The `workron` program: its commands, and what becomes of the errors that they raise."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import TYPE_CHECKING, Final

import typer

import workron
from workron.cli import exit_codes
from workron.core import errors, printable
from workron.telemetry import logging

if TYPE_CHECKING:
    from collections.abc import Sequence


_MOST_PROBLEMS: Final = 50
COMMANDS: Final = {
    "run": "run",
    "worker": "worker",
    "maintain": "maintainer",
    "controller": "controller",
    "submit": "manage",
    "wait": "manage",
    "cancel": "manage",
    "get": "inspect",
    "describe": "inspect",
    "output": "output",
    "graph": "inspect",
    "validate": "manage",
    "migrate": "manage",
    "version": "app",
}
"""The module that has each command's function, which has the command's name."""
_SERVING: Final = frozenset({"worker", "maintain", "controller"})
"""They run for months, beside what the machine is there for."""


def main() -> None:
    """Run the program; it ends with one of `exit_codes`."""
    logging.silence_libraries()
    try:
        app(sys.argv[1:2])()
    except errors.WorkronError as error:
        if logging.is_debug():
            raise
        _complain(str(error) + _hint(error))
        sys.exit(_code_of(error))
    except Exception as error:
        if logging.is_debug():
            raise
        _complain(_full(error) or _fault(error))
        sys.exit(exit_codes.FAILED)


def app(wanted: Sequence[str] = ()) -> typer.Typer:
    """Make the program, with no other commands loaded than the one that is wanted."""
    made = typer.Typer(
        name="workron",
        help="Run command-line jobs and DAGs of them: here, or by way of a store.",
        epilog=exit_codes.HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # Without it a program of one command would take no name of a command.
    made.callback()(lambda: None)
    if _SERVING.intersection(wanted):
        logging.load_lean()
    for name in [name for name in COMMANDS if name in wanted] or COMMANDS:
        made.command()(getattr(importlib.import_module(f"workron.cli.{COMMANDS[name]}"), name))
    return made


def _code_of(error: errors.WorkronError) -> int:
    if isinstance(error, errors.InputError):
        return exit_codes.BAD_INPUT
    if isinstance(error, errors.NotFoundError):
        return exit_codes.NOT_FOUND
    if isinstance(error, errors.StoreTimeoutError):
        return exit_codes.STORE_TIMEOUT
    return exit_codes.FAILED


def _hint(error: errors.WorkronError) -> str:
    is_taken = isinstance(error, errors.NameTakenError)
    return "\n`workron cancel` ends it, the same `workron run` as before finishes it" * is_taken


def _fault(error: Exception) -> str:
    return (
        f"this is a fault of workron itself: {type(error).__name__}: {error};"
        f" set {logging.DEBUG}=1 to see where"
    )


def _full(error: Exception) -> str | None:
    if not isinstance(error, OSError) or error.errno != errno.ENOSPC or error.filename:
        return None
    # What could not be written is tried again when Python ends, and would be told once more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return f"standard output: {error.strerror}"


def _complain(message: str) -> None:
    # Parts of a message come from files and databases: nothing of it may move the cursor.
    lines = printable.text(message.encode(errors="replace")).splitlines() or [""]
    for line in lines[:_MOST_PROBLEMS]:
        typer.echo(f"workron: {line}", err=True)
    if len(lines) > _MOST_PROBLEMS:
        typer.echo(f"workron: and {len(lines) - _MOST_PROBLEMS:,} more", err=True)


def version() -> None:
    """Print the version of this program."""
    typer.echo(f"workron {workron.__version__}")
