"""What the parts below log, and what of it a person at a terminal is shown.

`program` silences what libraries would print by themselves; `run`, whose worker and maintainer are
the only ones to log, has their warnings printed.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import MutableMapping

DEBUG: Final = "WORKRON_DEBUG"
_OF_AN_OUTAGE: Final = frozenset(
    {"store does not answer", "beat was not answered", "maintenance is late"}
)
"""Each is said at every try, by each worker; `run` says once itself that the store is away."""


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


def _leave_out_outages(
    _: object, __: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    import structlog

    if event["event"] in _OF_AN_OUTAGE:
        raise structlog.DropEvent
    return event
