"""What Kopf keeps of objects here: nothing.

By itself it compares each object with a copy that it keeps in an annotation, be there handlers for
changes or not. That annotation may hold anything, and an object in which it is no JSON would be
heard of by lists alone; and to copy all of an object takes longer than all else that is done with
it. Used by `doorbell`.
"""

from __future__ import annotations

from typing import Any

import kopf


class NoMemory(kopf.DiffBaseStorage):
    """Knows no earlier edition of any object, and takes none down."""

    def fetch(self, **_: Any) -> None:
        """Give the earlier edition."""

    def build(self, **_: Any) -> Any:
        """Give what of an object would be compared with it."""

    def store(self, **_: Any) -> None:
        """Take down an edition."""
