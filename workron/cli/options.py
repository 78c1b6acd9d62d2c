"""The options and arguments that several commands share, so that they mean the same in each."""

from __future__ import annotations

import os
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from workron.core import errors, formats
from workron.store import connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from workron.core.formats import TextFormat


Choice = TypeVar("Choice", bound=StrEnum)


class Format(StrEnum):
    """How a command prints what it found."""

    TABLE = "table"
    JSON = "json"


def choice(words: type[Choice]) -> Callable[[str], Choice]:
    """Make what reads one of a few words, and refuses others in words of its own."""

    def read(text: str) -> Choice:
        try:
            return words(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not one of: {', '.join(words)}") from None

    return read


class LogFormat(StrEnum):
    """How a command that serves logs."""

    TEXT = "text"
    JSON = "json"


_STORE_HELP: Final = "memory:, sqlite:///path or postgresql://user@host/database."

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="Manifests, YAML or JSON; - is standard input."),
]
_STORE_OPTION: Final = typer.Option(
    "--store", envvar="WORKRON_STORE", metavar="URL", help=_STORE_HELP
)
Store = Annotated[str | None, _STORE_OPTION]
RunStore = Annotated[str, _STORE_OPTION]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="The namespace that is meant.")]
FileNamespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace of manifests that name none."),
]
Output = Annotated[
    Format,
    typer.Option(
        "--output", "-o", parser=choice(Format), metavar="table|json", help="How to print."
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="[KIND/][NAMESPACE/]NAME",
        help="KIND is job or workflow, and only needed where both have the name.",
    ),
]
Member = Annotated[
    str,
    typer.Argument(
        metavar="[KIND/][NAMESPACE/]NAME[/TASK[/INDEX]]",
        help="A job, a workflow, a task of it, or an element of an array: etl/transform/3.",
    ),
]


Slots = Annotated[
    int | None, typer.Option(min=1, max=1000, help="Commands at once; default: the CPUs.")
]
Log = Annotated[
    LogFormat | None,
    typer.Option(
        "--log",
        parser=choice(LogFormat),
        metavar="text|json",
        help="Lines on standard error; default: text on a terminal, else json.",
    ),
]

Health = Annotated[
    str | None,
    typer.Option(
        "--health",
        metavar="HOST:PORT",
        help="Where to answer /healthz, /readyz and /metrics; default: nowhere.",
    ),
]


def slots(given: int | None) -> int:
    """Say how many commands may run at once."""
    return given or os.cpu_count() or 1


def duration(option: str, text: str) -> timedelta:
    """Read a length of time; InputError says how one is written."""
    try:
        return formats.parse_duration(text)
    except ValueError as error:
        raise errors.InputError(f"{option}: {error}") from None


def name(option: str, text: str, form: TextFormat) -> str:
    """Read a name of that form; InputError says what is wrong with it."""
    if problem := form.problem(text):
        raise errors.InputError(f"{option}: {problem}")
    return text


def named(store: str) -> str:
    """Give the URL of a store; InputError if it is empty, as a variable that is not set."""
    if not store.strip():
        raise errors.InputError(f"--store is given, but empty; a store is {_STORE_HELP}")
    return store


def lasting(store: str | None) -> str:
    """Give the URL of a store that outlives this command; InputError if it would not."""
    if store is None:
        raise errors.InputError(
            "which store? Name it with --store URL, or once for all in WORKRON_STORE"
        )
    if connect.is_memory(named(store)):
        raise errors.InputError(
            "a store in memory ends with the command that made it, so there is nothing in it:"
            " use sqlite:///path or postgresql://…, or `workron run`"
        )
    return store
