"""Pools, and the tokens with which workers register in them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from workron.store.sqlite import engine

if TYPE_CHECKING:
    from workron.store.sqlite.engine import Transaction


_TOKEN_LIFE_SECONDS: Final = 365 * 86_400


def token_digest(token: str) -> str:
    """Return the hash of a token, which is all that the database stores."""
    return hashlib.sha256(token.encode()).hexdigest()


def ensure_pool(tx: Transaction, namespace: str, name: str) -> int:
    """Create a pool if needed, and return its id."""
    tx.run("ensure_pool.insert_pool", namespace=namespace, name=name)
    pool: int = tx.row("ensure_pool.pool", namespace=namespace, name=name)["id"]
    return pool


def add_token(
    tx: Transaction, pool: int, token: str, lease_seconds: float | None, *, is_granted: bool
) -> None:
    """Add a token that is valid for one year; it is granted if `revoke_pool` deletes it."""
    tx.run("ensure_pool.set_lease", pool=pool, lease=lease_seconds)
    tx.run("ensure_pool.delete_expired_tokens")
    tx.run(
        "grant_pool",
        hash=token_digest(token),
        pool=pool,
        expires=tx.now + engine.seconds_to_micros(_TOKEN_LIFE_SECONDS),
        granted=is_granted,
    )
