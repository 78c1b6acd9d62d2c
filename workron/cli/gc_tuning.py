"""Keeps Python's garbage collector from walking where there is nothing to be found.

Called by `files` and `graph`, which read manifests, and by `crew`, which runs jobs.
"""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


_ALLOCATIONS: Final = 20_000
"""Between two looks; Python's own 700 are those of a dozen attempts."""


@contextlib.contextmanager
def rare_collection() -> Iterator[None]:
    """Have it look seldom meanwhile, and never at what is there already.

    An attempt is some tens of objects that come and go in no cycle; looking for one after every
    few attempts is nearly a tenth of what a worker does for a job.
    """
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Have it rest; what stands at the end it never walks through again.

    A file of 500,000 dependencies becomes millions of objects, nearly all of which stay, and the
    collector walks through them again and again as their number grows: a third of the time that
    reading took. What is let go meanwhile has no cycles, and so needs no collector.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Nor is it worth a walk later: a plan lives as long as its command.
        gc.freeze()
        if was_enabled:
            gc.enable()
