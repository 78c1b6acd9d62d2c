"""The `workron` program: its commands, and how an error becomes a message and an exit code.

`main` imports only the module of the command that was asked for, because importing all of them
takes longer than most commands run. Each error of `workron.core.errors` maps to one exit code; any
other exception is a bug, and the message says so.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Collection
from typing import Final

import typer

import workron
from workron.cli import exit_codes
from workron.core import errors, printable
from workron.telemetry import logging

_MAX_LINES: Final = 50
_NAME_TAKEN: Final = (
    "\nto stop it, use `workron cancel`; to finish it, repeat the command that submitted it"
)
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
    "graph": "graph",
    "validate": "manage",
    "migrate": "manage",
    "version": "app",
}
"""The module that defines each command; the function has the name of the command."""
_LONG_RUNNING: Final = frozenset({"worker", "maintain", "controller"})
"""Commands that run for months, so their memory matters."""


def main() -> None:
    """Run the program and exit with one of `exit_codes`."""
    logging.silence_libraries()
    try:
        app(sys.argv[1:2])()
    except errors.WorkronError as error:
        if logging.is_debug():
            raise
        is_taken = isinstance(error, errors.NameTakenError)
        _print_error(str(error) + (_NAME_TAKEN if is_taken else ""))
        sys.exit(_exit_code(error))
    except Exception as error:
        if logging.is_debug():
            raise
        _print_error(_unexpected(error))
        sys.exit(exit_codes.FAILED)


def app(wanted: Collection[str] = ()) -> typer.Typer:
    """Build the program with the wanted commands, or with all if none of them exists."""
    program = typer.Typer(
        name="workron",
        help="Run command-line jobs and DAGs of jobs, on this machine or through a shared store.",
        epilog=exit_codes.HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # With a single command and no callback, typer would not expect the command's name.
    program.callback()(lambda: None)
    if _LONG_RUNNING.intersection(wanted):
        logging.load_lean()
    for name in [name for name in COMMANDS if name in wanted] or COMMANDS:
        program.command()(getattr(importlib.import_module(f"workron.cli.{COMMANDS[name]}"), name))
    return program


def _exit_code(error: errors.WorkronError) -> int:
    if isinstance(error, errors.InputError):
        return exit_codes.BAD_INPUT
    if isinstance(error, errors.NotFoundError):
        return exit_codes.NOT_FOUND
    is_timeout = isinstance(error, errors.StoreTimeoutError)
    return exit_codes.STORE_TIMEOUT if is_timeout else exit_codes.FAILED


def _unexpected(error: Exception) -> str:
    is_full = isinstance(error, OSError) and error.errno == errno.ENOSPC and not error.filename
    if is_full:
        # Python flushes standard output again at exit, and would report the same error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return f"standard output: {os.strerror(errno.ENOSPC)}"
    return (
        f"this is a bug in workron: {type(error).__name__}: {error};"
        f" set {logging.DEBUG}=1 to see the traceback"
    )


def _print_error(message: str) -> None:
    # Messages quote files and databases, which may contain terminal control sequences.
    lines = printable.text(message.encode(errors="replace")).splitlines() or [""]
    for line in lines[:_MAX_LINES]:
        typer.echo(f"workron: {line}", err=True)
    if len(lines) > _MAX_LINES:
        typer.echo(f"workron: and {len(lines) - _MAX_LINES:,} more", err=True)


def version() -> None:
    """Print the version of this program."""
    typer.echo(f"workron {workron.__version__}")
