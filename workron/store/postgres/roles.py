"""How a role logs in that we made: the URL that says so, and what the server keeps of its password.

Called by `operator`. The server is handed what it would make of the password itself (RFC 5802), so
that no log of its statements ever has the password.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Final
from urllib import parse

import asyncpg

from workron.core import errors
from workron.store.postgres import driver_errors

_ROUNDS: Final = 4096
"""What PostgreSQL takes by default; a password of ours is no word that more rounds would save."""
_SALT_BYTES: Final = 16
_OWNERS: Final = frozenset({"user", "password", "passfile"})


def scram_verifier(password: str, salt: bytes | None = None) -> str:
    """Make what proves a password known, and does not give it away."""
    salt = salt or secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ROUNDS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    return f"SCRAM-SHA-256${_ROUNDS}:{_text(salt)}${_text(stored)}:{_text(server)}"


def url_with_role(url: str, role: str, password: str) -> str:
    """Name the same database, to be entered by another role."""
    parts = parse.urlsplit(url)
    said = parse.parse_qsl(parts.query, keep_blank_values=True)
    query = parse.urlencode([one for one in said if one[0] not in _OWNERS], safe="/")
    login = f"{parse.quote(role, safe='')}:{parse.quote(password, safe='')}"
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{login}@{host}", query=query).geturl()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


_SECONDS: Final = 10.0
_REFUSALS: Final = (
    asyncpg.InvalidAuthorizationSpecificationError,
    # What PgBouncer says to a role that it does not know.
    asyncpg.ProtocolViolationError,
)


async def check_login(url: str) -> None:
    """Log in once; StoreRightsError if that is refused, and nothing if there is no answer now."""
    try:
        connection = await asyncpg.connect(url, timeout=_SECONDS, statement_cache_size=0)
    except _REFUSALS as refused:
        raise errors.PermissionDeniedError(
            f"{driver_errors.redact_url(url)}:"
            f" workers cannot log in as the role that was made for them:"
            f" {refused}; let pg_hba.conf admit it by its password (scram-sha-256), and a PgBouncer"
            " in front ask the server for it (auth_query)"
        ) from refused
    except driver_errors.DRIVER:
        # Too busy for now, or gone: who comes later finds out.
        return
    await connection.close(timeout=_SECONDS)
