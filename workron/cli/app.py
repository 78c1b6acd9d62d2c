"""The `workron` program: its commands, and how an error becomes a message and an exit code.

Only the module of the command that was asked for is imported, because importing all of them takes
longer than most commands run. The help of the program needs none of them. Each error of
`workron.core.errors` has an exit code; any other exception is a bug, and the message says so.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup

import workron
from workron.cli import completion, exit_codes, profiles
from workron.core import errors, printable
from workron.telemetry import logging

if TYPE_CHECKING:
    from collections.abc import Iterator


_MAX_LINES: Final = 50
_NAME_TAKEN: Final = (
    "\nto stop it, use `workron cancel`; to finish it, repeat the command that submitted it"
)
_SETTINGS: Final[dict[str, Any]] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


class CommandEntry(NamedTuple):
    """Where a command is defined, and its line in the help of the program."""

    module: str
    summary: str
    """Short enough for a line of 80 columns."""
    function: str = ""
    """The function, if it has another name than the command."""


SECTIONS: Final[Mapping[str, Mapping[str, CommandEntry]]] = {
    "Manifest files": {
        "run": CommandEntry("run", "Run jobs and workflows on this machine."),
        "validate": CommandEntry("submit", "Check files without running anything."),
        "graph": CommandEntry("graph", "Draw jobs and their dependencies."),
        "submit": CommandEntry("submit", "Submit jobs to a store; workers run them."),
    },
    "Jobs and workflows in a store": {
        "get": CommandEntry("listing", "List jobs and workflows."),
        "describe": CommandEntry("describe", "Show one job and why it is in its state."),
        "logs": CommandEntry("logs", "Print the output of a job."),
        "output": CommandEntry("logs", "Another name of logs.", "logs"),
        "wait": CommandEntry("manage", "Wait until jobs and workflows have ended."),
        "cancel": CommandEntry("control", "Cancel queued jobs and stop running ones."),
        "suspend": CommandEntry("control", "Let running jobs finish, and start no new ones."),
        "resume": CommandEntry("control", "Resume what was suspended."),
        "delete": CommandEntry("control", "Delete ended jobs and workflows."),
    },
    "Workers and stores": {
        "top": CommandEntry("workers", "Show how busy each pool is."),
        "workers": CommandEntry("workers", "List the workers of a store."),
        "worker": CommandEntry("worker", "Run jobs of one pool until a signal arrives."),
        "maintain": CommandEntry("maintainer", "Handle retries, deadlines and dead workers."),
        "controller": CommandEntry("controller", "Run the jobs of a Kubernetes cluster."),
        "migrate": CommandEntry("manage", "Create or upgrade the schema of a store."),
    },
    "This program": {
        "completion": CommandEntry("completion", "Print a completion script for a shell."),
        "version": CommandEntry("app", "Print the version."),
    },
}
"""The commands in the order of the help."""
COMMANDS: Final = {name: one for section in SECTIONS.values() for name, one in section.items()}
_LONG_RUNNING: Final = frozenset({"worker", "maintain", "controller"})
"""Commands that run for months, so their memory matters."""


def main() -> None:
    """Run the program and exit with one of `exit_codes`."""
    logging.silence_libraries()
    completion.enable()
    try:
        app()(prog_name="workron")
    except errors.WorkronError as error:
        if logging.is_debug():
            raise
        is_taken = isinstance(error, errors.NameTakenError)
        _print_error(str(error) + (_NAME_TAKEN if is_taken else ""))
        sys.exit(error.exit_code)
    except Exception as error:
        if logging.is_debug():
            raise
        _print_error(_unexpected(error))
        sys.exit(exit_codes.FAILED)


def app() -> CommandGroup:
    """Build the program, whose commands are imported on use."""
    program = typer.Typer(
        name="workron",
        cls=CommandGroup,
        help="Run command-line jobs and DAGs of jobs, on this machine or through a shared store.",
        epilog=exit_codes.HELP,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        **_SETTINGS,
    )
    program.callback()(_print_version_if_asked)
    group = typer.main.get_command(program)
    assert isinstance(group, CommandGroup)
    group.commands = _LazyCommands()  # type: ignore[assignment]
    return group


class CommandGroup(TyperGroup):
    """The program; its help and its completion come from `SECTIONS`, without an import."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by section."""
        del ctx
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), one.summary) for name, one in commands.items()]
                )

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the commands and options that begin like this."""
        from typer._click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=one.summary)
            for name, one in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return commands + super(TyperGroup, self).shell_complete(ctx, incomplete)


class _LazyCommands(Mapping[str, Any]):
    """The commands by name; getting one imports its module."""

    def __getitem__(self, name: str) -> Any:
        entry = COMMANDS[name]
        if name in _LONG_RUNNING:
            logging.load_lean()
        module = importlib.import_module(f"workron.cli.{entry.module}")
        single = typer.Typer(**_SETTINGS)
        single.command(name)(getattr(module, entry.function or name))
        command = typer.main.get_command(single)
        profiles.add_option(command)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


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


def _exit_with_version(is_asked: bool) -> None:
    if is_asked:
        version()
        raise typer.Exit


def _print_version_if_asked(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", is_eager=True, callback=_exit_with_version, help="Print the version."
        ),
    ] = False,
) -> None:
    del show_version
