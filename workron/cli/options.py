"""Options and arguments that several commands share, and the functions that read their values.

A command gets values that are already parsed and checked. A parser raises InputError, whose message
says more than typer's own would.
"""

from __future__ import annotations

import os
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

import typer

from workron.core import errors, formats
from workron.store import connect

if TYPE_CHECKING:
    from workron.core.formats import TextFormat


Choice = TypeVar("Choice", bound=StrEnum)


def choice(words: type[Choice]) -> Any:
    """Make an option with the values of an enum, whose error lists all of them."""

    def read(text: str) -> Choice:
        try:
            return words(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not one of: {', '.join(words)}") from None

    return {"parser": read, "metavar": "|".join(words), "autocompletion": lambda: list(words)}


class OutputFormat(StrEnum):
    """Output format of a command."""

    TABLE = "table"
    JSON = "json"


class LogFormat(StrEnum):
    """Log format of a long-running command."""

    TEXT = "text"
    JSON = "json"


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
        raise errors.InputError(
            "no store given: use --store URL, set WORKRON_STORE, or name a profile with a store"
        )
    if connect.is_memory(check_store_url(store)):
        raise errors.InputError(
            "a memory: store is empty, because it ends with the command that created it; use"
            " sqlite:///path or postgresql://user@host/database, or `workron run`"
        )
    return store


def store_option(**settings: Any) -> Any:
    """Make an option for the URL of a store."""
    text = "Store: memory:, sqlite:///path or postgresql://user@host/database."
    return typer.Option("--store", envvar="WORKRON_STORE", metavar="URL", help=text, **settings)


Store = Annotated[
    str,
    store_option(
        callback=require_persistent_store, default_factory=lambda: None, show_default=False
    ),
]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...", help="Manifest files in YAML or JSON; - reads standard input."
    ),
]
Namespace = Annotated[
    str,
    typer.Option("--namespace", "-n", metavar="NAME", help="Namespace of the job or workflow."),
]
Output = Annotated[
    OutputFormat,
    typer.Option("--output", "-o", help="Output format.", **choice(OutputFormat)),
]
Slots = Annotated[
    int | None,
    typer.Option(min=1, max=1000, help="Commands that run at once; default: number of CPUs."),
]
EnvFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--env-file",
        metavar="FILE",
        help="Pass the variables of this file, with lines NAME=VALUE, to all commands; the store"
        " does not keep their values.",
        show_default=False,
    ),
]
Log = Annotated[
    LogFormat | None,
    typer.Option(
        "--log",
        help="Log format on standard error; default: text on a terminal, json otherwise.",
        **choice(LogFormat),
    ),
]

_LAST_PORT: Final = 2**16 - 1
_ADDRESS: Final = "use HOST:PORT, such as 127.0.0.1:9464, or 0.0.0.0:9464 for all interfaces"


class Address(NamedTuple):
    """Host and port to listen on."""

    host: str
    port: int

    def __str__(self) -> str:
        """Format as the option expects it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str) -> Address:
    """Parse a host and port; InputError says what is wrong with them."""
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if is_bracketed:
        host = host[1:-1]
    if not (colon and host):
        raise errors.InputError(f"--health: {text!r} is not a host and port; {_ADDRESS}")
    if ":" in host and not is_bracketed:
        raise errors.InputError(f"--health: {text!r}: write [{host}]:{port} for an IPv6 address")
    if not (port.isascii() and port.isdecimal() and int(port) <= _LAST_PORT):
        raise errors.InputError(
            f"--health: {port!r} is not a port from 0 to {_LAST_PORT}; {_ADDRESS}"
        )
    return Address(host, int(port))


Health = Annotated[
    Address | None,
    typer.Option(
        "--health",
        parser=address,
        metavar="HOST:PORT",
        help="Serve /healthz, /readyz and /metrics on this address; default: off.",
    ),
]


def slots(given: int | None) -> int:
    """Return how many commands may run at once."""
    return given or os.cpu_count() or 1


def duration(option: str, text: str, minimum: timedelta = timedelta(0)) -> Any:
    """Make an option for a duration, whose error explains the format."""

    def read(given: str | timedelta) -> timedelta:
        try:
            value = given if isinstance(given, timedelta) else formats.parse_duration(given)
        except ValueError as error:
            raise errors.InputError(f"{option}: {error}") from None
        if value < minimum:
            shortest = formats.format_duration(minimum)
            raise errors.InputError(f"{option}: {given} is too short; the minimum is {shortest}")
        return value

    return typer.Option(option, parser=read, metavar="DURATION", help=text, show_default=False)


def name(*options: str, form: TextFormat, text: str, **settings: Any) -> Any:
    """Make an option for a name; InputError says what is wrong with it."""

    def read(given: str) -> str:
        if problem := form.problem(given):
            raise errors.InputError(f"{options[0]}: {problem}")
        return given

    return typer.Option(*options, parser=read, help=text, **{"metavar": "NAME"} | settings)


FileNamespace = Annotated[
    str | None,
    name(
        "--namespace",
        "-n",
        form=formats.LABEL,
        text="Namespace of manifests that do not set one.",
    ),
]
