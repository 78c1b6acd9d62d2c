"""Options and arguments that several commands share, and the functions that read their values."""

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


class OutputFormat(StrEnum):
    """Output format of a command."""

    TABLE = "table"
    JSON = "json"


def choice(words: type[Choice]) -> Callable[[str], Choice]:
    """Return a parser of an enum's values, whose error lists all of them."""

    def read(text: str) -> Choice:
        try:
            return words(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not one of: {', '.join(words)}") from None

    return read


class LogFormat(StrEnum):
    """Log format of a long-running command."""

    TEXT = "text"
    JSON = "json"


_STORE_HELP: Final = "Store: memory:, sqlite:///path or postgresql://user@host/database."

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...", help="Manifest files in YAML or JSON; - reads standard input."
    ),
]
_STORE_OPTION: Final = typer.Option(
    "--store", envvar="WORKRON_STORE", metavar="URL", help=_STORE_HELP
)
Store = Annotated[str | None, _STORE_OPTION]
RunStore = Annotated[str, _STORE_OPTION]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace of the job or workflow.")
]
FileNamespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace of manifests that do not set one."),
]
Output = Annotated[
    OutputFormat,
    typer.Option(
        "--output", "-o", parser=choice(OutputFormat), metavar="table|json", help="Output format."
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="[KIND/][NAMESPACE/]NAME",
        help="KIND is job or workflow; required only if both kinds have the name.",
    ),
]
Member = Annotated[
    str,
    typer.Argument(
        metavar="[KIND/][NAMESPACE/]NAME[/TASK[/INDEX]]",
        help="A job, a workflow, one of its tasks, or an array element: etl/transform/3.",
    ),
]


Slots = Annotated[
    int | None,
    typer.Option(min=1, max=1000, help="Commands that run at once; default: number of CPUs."),
]
Log = Annotated[
    LogFormat | None,
    typer.Option(
        "--log",
        parser=choice(LogFormat),
        metavar="text|json",
        help="Log format on standard error; default: text on a terminal, json otherwise.",
    ),
]

Health = Annotated[
    str | None,
    typer.Option(
        "--health",
        metavar="HOST:PORT",
        help="Serve /healthz, /readyz and /metrics on this address; default: off.",
    ),
]


def slots(given: int | None) -> int:
    """Return how many commands may run at once."""
    return given or os.cpu_count() or 1


def duration(option: str, text: str) -> timedelta:
    """Parse a duration; InputError explains the format."""
    try:
        return formats.parse_duration(text)
    except ValueError as error:
        raise errors.InputError(f"{option}: {error}") from None


def name(option: str, text: str, form: TextFormat) -> str:
    """Return the name if it has that form; InputError says what is wrong with it."""
    if problem := form.problem(text):
        raise errors.InputError(f"{option}: {problem}")
    return text


def check_store_url(store: str) -> str:
    """Return the URL; InputError if it is empty, as an unset shell variable is."""
    if not store.strip():
        raise errors.InputError(
            "--store is empty; give memory:, sqlite:///path or postgresql://user@host/database"
        )
    return store


def require_persistent_store(store: str | None) -> str:
    """Return the URL; InputError if there is none, or if the store ends with this command."""
    if store is None:
        raise errors.InputError("no store given: use --store URL or set WORKRON_STORE")
    if connect.is_memory(check_store_url(store)):
        raise errors.InputError(
            "a memory: store is empty, because it ends with the command that created it; use"
            " sqlite:///path or postgresql://user@host/database, or `workron run`"
        )
    return store
