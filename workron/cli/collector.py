"""Keeps Python's garbage collector from walking through a manifest while it is being read.

Called by `files` and `graph`.
"""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def resting() -> Iterator[None]:
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
