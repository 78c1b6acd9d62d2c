"""Settings of Python's garbage collector for workers and for reading large manifests."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Final

_ALLOCATIONS: Final = 20_000
"""Allocations between two collections; a dozen attempts make Python's default of 700."""


@contextlib.contextmanager
def rare_collection() -> Iterator[None]:
    """Collect rarely inside the block, and never the objects that exist already.

    An attempt allocates some tens of objects without cycles. With Python's default threshold,
    collections take nearly a tenth of a worker's time for a job.
    """
    default = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
    try:
        yield
    finally:
        gc.set_threshold(*default)


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Disable collection inside the block, and exclude the objects it leaves from later ones.

    A file of 500,000 dependencies becomes millions of objects, nearly all of which stay. Repeated
    collections take a third of the time of reading it. Objects freed meanwhile have no cycles.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # A plan lives as long as its command, so later collections would find nothing either.
        gc.freeze()
        if was_enabled:
            gc.enable()
