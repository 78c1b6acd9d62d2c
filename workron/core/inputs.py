"""The bound on what a job is given of its upstreams' results. Called by the stores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES: Final = 1024 * 1024


def fit(text: str | None) -> tuple[Mapping[str, Any] | None, bool]:
    """Parse the inputs, or say that they are too large to be given."""
    if text is None:
        return None, False
    if len(text.encode()) > MOST_BYTES:
        return None, True
    try:
        return json.loads(text), False
    except (RecursionError, ValueError):
        # Results stand one level deeper here than where they were read; too deep is too large.
        return None, True
