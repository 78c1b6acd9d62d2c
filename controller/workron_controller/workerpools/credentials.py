"""Takes back from pools that are gone what let their workers into the store.

As careful as the comparison of jobs: a pool is gone if the store knew of it before a complete list
began, its namespace could be listed, it is missing there, and it is asked for by its name in vain.
A pool of that name may come again at any time, and is let in anew. Called by `keeper`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from workron.core import errors
from workron_controller.kube import errors as api_errors
from workron_controller.kube import resources

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from workron_controller.workerpools.reconciler import ReconcilerDependencies


if TYPE_CHECKING:
    Name = tuple[str, str]

_PERIOD_SECONDS: Final = 60.0

_log = structlog.get_logger(__name__)


class CredentialRevoker:
    """Which pools the store knew of, and which of them are no more."""

    def __init__(self, around: ReconcilerDependencies, doubt: Callable[[Name], None]) -> None:
        self._around = around
        self._doubt = doubt
        self._due_at = 0.0

    async def candidates(self) -> Collection[Name]:
        """Give, at times, all that were let in; to be asked before pools are listed."""
        now = self._around.clock.monotonic()
        if now < self._due_at:
            return ()
        known = await self._around.store.granted_pools()
        self._due_at = now + _PERIOD_SECONDS
        return known

    async def dismiss(self, missing: Iterable[Name]) -> None:
        """Take it back from those that are not there, one after the other."""
        for name in sorted(missing):
            if await self._is_gone(name):
                await self._dismiss(name)

    async def _is_gone(self, name: Name) -> bool:
        try:
            await self._around.api.get(resources.WORKERPOOLS.at(*name))
        except api_errors.ObjectNotFoundError:
            return True
        except api_errors.ApiError as unknown:
            _log.warning("pool is not asked for", pool=name, error=str(unknown))
        return False

    async def _dismiss(self, name: Name) -> None:
        try:
            if await self._around.store.revoke_pool(*name):
                _log.info("pool is gone, and its workers are let in no more", pool=name)
        except errors.PermissionDeniedError as rest:
            _log.warning("role of a pool that is gone is left", pool=name, error=str(rest))
        finally:
            # One that was made meanwhile may have been let in just before.
            self._doubt(name)
