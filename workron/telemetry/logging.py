"""Logging of every process, with structlog.

`configure` is for commands that a person watches: warnings only, as text. `serve` is for the
long-running commands: one line for each event, as JSON or text. Lines of one turn of the event loop
are written together. Fields bound with `structlog.contextvars` appear in every line of their task.
"""

from __future__ import annotations

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
    from collections.abc import MutableMapping

    import structlog


DEBUG: Final = "WORKRON_DEBUG"
STORE_OUTAGE: Final = "store_outage"
"""The `event_id` of what each worker logs at each retry. `workron run` reports an outage once."""


def load_lean() -> None:
    """Import structlog without Rich, which it imports if installed, for tracebacks.

    Rich is a fifth of the memory of an idle worker. None in `sys.modules` makes Python treat a
    module as not installed; the entry is removed afterwards, because other commands use Rich.
    """
    if "rich" not in sys.modules and "structlog" not in sys.modules:
        sys.modules["rich"] = None  # type: ignore[assignment]
        try:
            importlib.import_module("structlog")
        finally:
            del sys.modules["rich"]


def is_debug() -> bool:
    """Return whether WORKRON_DEBUG asks for debug output."""
    return bool(os.environ.get(DEBUG))


def silence_libraries() -> None:
    """Keep libraries from printing tracebacks; their errors reach the user as messages."""
    logger = logging.getLogger("asyncpg")
    logger.propagate = is_debug()
    if not is_debug():
        logger.addHandler(logging.NullHandler())


def configure() -> None:
    """Log warnings to stderr as text, and everything when debugging."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            *([] if is_debug() else [_drop_outage_events]),
            structlog.dev.ConsoleRenderer(colors=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if is_debug() else logging.WARNING
        ),
        # Looked up for each line, because the live display replaces stderr.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def serve(form: str | None) -> None:
    """Log events to stderr as `text` or `json`; None means text on a terminal, else JSON."""
    import structlog

    lines = _Lines()
    render = [_as_json()]
    if form == "text" or (form is None and sys.stderr.isatty()):
        render = [
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), timestamp_key="time"),
        ]
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *render],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if is_debug() else logging.INFO
        ),
        logger_factory=lambda *_: lines,
    )


def redirect_library(library: str) -> None:
    """Log warnings of a library through structlog, with its name."""
    logger = logging.getLogger(library)
    logger.propagate = False
    logger.addHandler(_StructlogHandler(logging.WARNING))


class _StructlogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        import structlog

        fields = {"library": record.name}
        if record.exc_info and record.exc_info[1]:
            fields["error"] = repr(record.exc_info[1])
        structlog.get_logger().log(record.levelno, record.getMessage(), **fields)


def _as_json() -> structlog.typing.Processor:
    """Render in one step: the log line is a good part of the cost of a short attempt."""
    import msgspec

    encoder = msgspec.json.Encoder(enc_hook=repr)

    def write(_: object, level: str, event: MutableMapping[str, Any]) -> str:
        event["level"], event["time"] = level, datetime.now(UTC)
        with contextlib.suppress(ValueError, OverflowError):
            line = encoder.encode(event)
            if line.isascii():
                return line.decode()
        # Escaped, so that the line is valid in any encoding.
        return json.dumps(event, default=_plain)

    return write


def _plain(value: object) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else repr(value)


class _Lines:
    """Writes lines to stderr, those of one turn of the event loop together.

    A closed stderr does not end a worker.
    """

    def __init__(self) -> None:
        self._buffered: list[str] = []
        self._thread: int | None = None
        """The thread whose event loop will write the buffered lines."""

    def msg(self, line: str) -> None:
        import asyncio

        thread = threading.get_ident()
        if self._thread is None:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().call_soon(self._flush)
                self._thread = thread
        if self._thread == thread:
            self._buffered.append(line)
        else:
            _write([line])

    def _flush(self) -> None:
        lines, self._buffered, self._thread = self._buffered, [], None
        _write(lines)

    debug = info = warning = error = critical = exception = msg


def _write(lines: list[str]) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write("\n".join([*lines, ""]))
        sys.stderr.flush()


def _drop_outage_events(
    _: object, __: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    import structlog

    if event.get("event_id") == STORE_OUTAGE:
        raise structlog.DropEvent
    return event
