"""Revokes the credentials of deleted pools: their role and their token in the store.

A pool counts as deleted only if the store knew it before a complete list began, the list covers its
namespace and lacks the pool, and a request by name finds no such pool. A pool of the same name may
be created at any time, even during the revocation; it is granted new credentials then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from workron.core import errors
from workron_controller.kube import errors as api_errors
from workron_controller.kube import resources

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from workron_controller.workerpools.config import PoolDependencies

    Name = tuple[str, str]

_PERIOD_SECONDS: Final = 60.0

_log = structlog.get_logger(__name__)


class CredentialRevoker:
    """Finds deleted pools once a minute; `invalidate_grant` has a pool granted again."""

    def __init__(self, deps: PoolDependencies, invalidate_grant: Callable[[Name], None]) -> None:
        self._deps = deps
        self._invalidate_grant = invalidate_grant
        self._due_at = 0.0

    async def list_granted(self) -> Collection[Name]:
        """Return all pools with credentials if a check is due; call it before listing pools."""
        now = self._deps.clock.monotonic()
        if now < self._due_at:
            return ()
        known = await self._deps.store.granted_pools()
        self._due_at = now + _PERIOD_SECONDS
        return known

    async def revoke_missing(self, missing: Iterable[Name]) -> None:
        """Revoke the credentials of those pools that do not exist."""
        for name in sorted(missing):
            if await self._is_deleted(name):
                await self._revoke(name)

    async def _is_deleted(self, name: Name) -> bool:
        try:
            await self._deps.api.get(resources.WORKERPOOLS.at(*name))
        except api_errors.ObjectNotFoundError:
            return True
        except api_errors.ApiError as error:
            _log.warning("pool not checked", pool=name, error=str(error))
        return False

    async def _revoke(self, name: Name) -> None:
        try:
            if await self._deps.store.revoke_pool(*name):
                _log.info("credentials revoked: the pool was deleted", pool=name)
        except errors.PermissionDeniedError as error:
            _log.warning("role of a deleted pool not dropped", pool=name, error=str(error))
        finally:
            # A new pool of this name may have been granted just before.
            self._invalidate_grant(name)
