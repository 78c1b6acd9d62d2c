"""Credentials of pools: granted in the store, written to a Secret, and revoked.

The Secret of a pool has the URL and the token by which its agents open the store. Both stay the
same when access is granted again. That happens every five minutes, because a database that was
restored from a backup may lack the role or the token.

A pool counts as deleted only if the store knew it before a complete list began, the list covers its
namespace and lacks the pool, and a request by name finds no such pool. A pool of the same name may
be created at any time, even during the revocation; it is granted new credentials then.
"""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, Final
from urllib import parse

import structlog

from workron.core import errors
from workron.store.types import PoolGrant
from workron_controller.kube import errors as api_errors
from workron_controller.kube import resources
from workron_controller.workerpools import autoscaler, manifests, status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from workron.core.model.workerpool import WorkerPoolSpec
    from workron_controller.workerpools.config import PoolDependencies
    from workron_controller.workerpools.manifests import PoolName, PoolNames
    from workron_controller.workerpools.observed import ObservedPool


_REGRANT_SECONDS: Final = 300.0
_REVOKE_SECONDS: Final = 60.0

_log = structlog.get_logger(__name__)


class PoolCredentials:
    """The credentials of one pool."""

    def __init__(self, pool: PoolNames, deps: PoolDependencies) -> None:
        self._pool = pool
        self._deps = deps
        self._path = resources.SECRETS.at(pool.namespace, pool.secret)
        self._log = _log.bind(namespace=pool.namespace, pool=pool.name)
        self._granted: tuple[int, float] | None = None
        self._invalidations = 0

    def invalidate(self) -> None:
        """Grant access again, even if a grant is in progress."""
        self._granted = None
        self._invalidations += 1

    async def grant(self, spec: WorkerPoolSpec, generation: int, observed: ObservedPool) -> None:
        """Grant the pool access to the store, with the credentials that it has if possible."""
        now = self._deps.clock.monotonic()
        if self._granted is not None and not status.lacks_secret(observed):
            granted_generation, at = self._granted
            if granted_generation == generation and now < at + _REGRANT_SECONDS:
                return
        invalidations = self._invalidations
        before = await self._read()
        url, token = before or (None, secrets.token_urlsafe())
        max_workers = spec.max_replicas if spec.replicas is None else spec.replicas
        grant = PoolGrant(
            namespace=self._pool.namespace,
            pool=self._pool.name,
            token=token,
            lease_seconds=spec.lease.total_seconds(),
            password=self._password(url),
            # Terminating workers need their connections until they have ended.
            connections=autoscaler.role_connection_limit(max(max_workers, observed.worker_count)),
        )
        login = await self._deps.store.grant_pool(grant)
        self._deps.budget.set_database_limit(login.connections)
        if (login.url, token) != before:
            secret = manifests.secret(self._pool, login.url, token)
            await self._deps.api.apply(self._path, secret)
            self._log.info("access granted", uses_shared_role=grant.password is None)
        if invalidations == self._invalidations:
            self._granted = generation, now

    async def _read(self) -> tuple[str, str] | None:
        """Read URL and token from the Secret; None if it is missing or malformed."""
        try:
            data = (await self._deps.api.get(self._path)).get("data") or {}
            return _decode(data[manifests.STORE_KEY]), _decode(data[manifests.TOKEN_KEY])
        except (api_errors.ObjectNotFoundError, KeyError, ValueError):
            return None

    def _password(self, url: str | None) -> str | None:
        """Return the password of the pool's role; None if it uses the controller's role."""
        if self._deps.config.uses_shared_role:
            return None
        # The password of the controller's own role must not become the pool's.
        is_own = url is not None and url != self._deps.store.url
        password = parse.urlsplit(url).password if is_own else None
        return parse.unquote(password) if password else secrets.token_urlsafe()


def _decode(text: str) -> str:
    return base64.b64decode(text, validate=True).decode()


class CredentialRevoker:
    """Finds deleted pools once a minute; `invalidate` has a new pool of that name granted again."""

    def __init__(self, deps: PoolDependencies, invalidate: Callable[[PoolName], None]) -> None:
        self._deps = deps
        self._invalidate = invalidate
        self._due_at = 0.0

    async def list_granted(self) -> Collection[PoolName]:
        """Return all pools with credentials if a check is due; call it before listing pools."""
        now = self._deps.clock.monotonic()
        if now < self._due_at:
            return ()
        try:
            known = await self._deps.store.granted_pools()
        except errors.StoreError:
            # The next call of the store reports the error.
            return ()
        self._due_at = now + _REVOKE_SECONDS
        return known

    async def revoke_missing(self, missing: Iterable[PoolName]) -> None:
        """Revoke the credentials of those pools that do not exist."""
        for name in sorted(missing):
            try:
                await self._deps.api.get(resources.WORKERPOOLS.at(*name))
            except api_errors.ObjectNotFoundError:
                await self._revoke(name)
            except api_errors.ApiError as error:
                _log.warning("pool not checked", pool=name, error=str(error))

    async def _revoke(self, name: PoolName) -> None:
        try:
            if await self._deps.store.revoke_pool(*name):
                _log.info("credentials revoked: the pool was deleted", pool=name)
        except errors.PermissionDeniedError as error:
            _log.warning("role of a deleted pool not dropped", pool=name, error=str(error))
        finally:
            # A new pool of this name may have been granted just before.
            self._invalidate(name)
