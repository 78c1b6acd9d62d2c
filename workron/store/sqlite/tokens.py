"""Tokens with which workers register in a pool."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workron.core.clock import Rng


LIFE: Final = timedelta(days=365)


def mint(rng: Rng) -> str:
    """Create a token; it is as hard to guess as `rng`."""
    return f"{rng.getrandbits(256):064x}"


def digest(token: str) -> str:
    """Return the hash of a token, which is all that the database stores."""
    return hashlib.sha256(token.encode()).hexdigest()
