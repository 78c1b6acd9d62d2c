"""The tokens that admit workers to a pool. Called by the doors of the worker and of submissions."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workron.core.clock import Rng


LIFE: Final = timedelta(days=365)


def mint(rng: Rng) -> str:
    """Draw a token that nobody can guess, if `rng` is one that nobody can."""
    return f"{rng.getrandbits(256):064x}"


def digest(token: str) -> str:
    """Give what the database keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
