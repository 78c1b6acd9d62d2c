"""Database roles of pools: their connection URL and their password verifier.

The server is given a SCRAM verifier instead of the password (RFC 5802), so that no statement log
contains the password.
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

_ITERATIONS: Final = 4096
"""PostgreSQL's default; the passwords are random, so more iterations would not protect them."""
_SALT_BYTES: Final = 16
_OWNER_PARAMETERS: Final = frozenset({"user", "password", "passfile"})


def scram_verifier(password: str, salt: bytes | None = None) -> str:
    """Make the verifier that PostgreSQL stores for a password."""
    salt = salt or secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    return f"SCRAM-SHA-256${_ITERATIONS}:{_base64(salt)}${_base64(stored)}:{_base64(server)}"


def url_with_role(url: str, role: str, password: str) -> str:
    """Return the URL of the same database for another role."""
    parts = parse.urlsplit(url)
    parameters = parse.parse_qsl(parts.query, keep_blank_values=True)
    kept = [parameter for parameter in parameters if parameter[0] not in _OWNER_PARAMETERS]
    login = f"{parse.quote(role, safe='')}:{parse.quote(password, safe='')}"
    host = parts.netloc.rpartition("@")[2]
    query = parse.urlencode(kept, safe="/")
    return parts._replace(netloc=f"{login}@{host}", query=query).geturl()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


_LOGIN_SECONDS: Final = 10.0
_LOGIN_ERRORS: Final = (
    asyncpg.InvalidAuthorizationSpecificationError,
    # PgBouncer's answer to an unknown role.
    asyncpg.ProtocolViolationError,
)


async def check_login(url: str) -> None:
    """Log in once. PermissionDeniedError if that is refused; other failures are ignored."""
    try:
        connection = await asyncpg.connect(url, timeout=_LOGIN_SECONDS, statement_cache_size=0)
    except _LOGIN_ERRORS as refused:
        raise errors.PermissionDeniedError(
            f"{driver_errors.redact_url(url)}: workers cannot log in as the role created for them:"
            f" {refused}; allow password login (scram-sha-256) in pg_hba.conf, and let a PgBouncer"
            " look up its users (auth_query)"
        ) from refused
    except driver_errors.DRIVER:
        # The server is too busy or unreachable right now; the workers will find out.
        return
    await connection.close(timeout=_LOGIN_SECONDS)
