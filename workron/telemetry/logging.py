"""What the parts below log, and what of it is printed.

`program` silences what libraries would print by themselves. `run` prints the warnings of its worker
and maintainer to a person; `worker` and `maintain`, which serve, print everything worth keeping.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    import structlog


DEBUG: Final = "WORKRON_DEBUG"
_OF_AN_OUTAGE: Final = frozenset(
    {"store does not answer", "beat was not answered", "maintenance is late"}
)
"""Each is said at every try, by each worker; `run` says once itself that the store is away."""


def load_lean() -> None:
    """Load structlog without Rich, which it would bring along for tracebacks with values in them.

    Rich is a fifth of the memory of an idle worker. None in `sys.modules` is Python's way to say
    that a module is not there; it is taken back, for there are commands that draw with it.
    """
    if "rich" not in sys.modules and "structlog" not in sys.modules:
        sys.modules["rich"] = None  # type: ignore[assignment]
        try:
            importlib.import_module("structlog")
        finally:
            del sys.modules["rich"]


def is_debug() -> bool:
    """Tell whether somebody wants to see what is usually left out."""
    return bool(os.environ.get(DEBUG))


def silence_libraries() -> None:
    """Keep libraries from printing tracebacks: what they mean reaches a person as an error."""
    logger = logging.getLogger("asyncpg")
    logger.propagate = is_debug()
    if not is_debug():
        logger.addHandler(logging.NullHandler())


def configure() -> None:
    """Print warnings of this program to stderr; all that is logged when debugging."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            *([] if is_debug() else [_leave_out_outages]),
            structlog.dev.ConsoleRenderer(colors=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if is_debug() else logging.WARNING
        ),
        # Looked up at each line: the live display puts itself in the place of stderr.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def serve(form: str | None) -> None:
    """Print what happens to stderr, a line each, as `text` or `json`; None: as who reads it likes.

    A person reads a terminal, and a program everything else.
    """
    import structlog

    lines = _Lines()
    is_text = form == "text" if form else sys.stderr.isatty()
    render = _as_text() if is_text else [_as_json()]
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *render],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if is_debug() else logging.INFO
        ),
        logger_factory=lambda *_: lines,
    )


def take_in(library: str) -> None:
    """Print the warnings of a library like our own lines, with its name."""
    logger = logging.getLogger(library)
    logger.propagate = False
    logger.addHandler(_Bridge(logging.WARNING))


class _Bridge(logging.Handler):
    """Hands records of the standard library on to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Say it as a line of ours."""
        import structlog

        event = structlog.get_logger()
        about = {"library": record.name}
        if record.exc_info and record.exc_info[1]:
            about["error"] = repr(record.exc_info[1])
        event.log(record.levelno, record.getMessage(), **about)


def _as_text() -> Sequence[structlog.typing.Processor]:
    import structlog

    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), timestamp_key="time"),
    ]


def _as_json() -> structlog.typing.Processor:
    """Give all in one step: a line of each attempt is a good part of what a short one costs."""
    import msgspec

    encoder = msgspec.json.Encoder(enc_hook=repr)

    def write(_: object, level: str, event: MutableMapping[str, Any]) -> str:
        event["level"], event["time"] = level, datetime.now(UTC)
        with contextlib.suppress(ValueError, OverflowError):
            line = encoder.encode(event)
            if line.isascii():
                return line.decode()
        # Escaped, so that it can be read in any encoding.
        return json.dumps(event, default=_plain)

    return write


def _plain(value: object) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else repr(value)


class _Lines:
    """Writes lines to stderr, those of one turn of a loop together.

    That nobody reads them any more ends no worker.
    """

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._thread: int | None = None
        """Whose turn it is that they wait for the end of."""

    def msg(self, line: str) -> None:
        """Write one, whole."""
        # In a turn of its own nobody else's line is waited for.
        is_free = self._thread is None and self._begin()
        if is_free or self._thread == threading.get_ident():
            self._waiting.append(line)
        else:
            _write([line])

    def _begin(self) -> bool:
        """Gather the lines of this turn from now on; False where there is no loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        self._thread = threading.get_ident()
        loop.call_soon(self._flush)
        return True

    def _flush(self) -> None:
        lines, self._waiting, self._thread = self._waiting, [], None
        _write(lines)

    debug = info = warning = error = critical = exception = msg


def _write(lines: list[str]) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write("\n".join([*lines, ""]))
        sys.stderr.flush()


def _leave_out_outages(
    _: object, __: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    import structlog

    if event["event"] in _OF_AN_OUTAGE:
        raise structlog.DropEvent
    return event
