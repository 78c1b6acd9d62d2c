"""Requests for the Jobs and Workflows of a cluster: list, find, write a status, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

import structlog

from workron.core.plan import Kind
from workron_controller.jobs.cache import CachedObject
from workron_controller.kube import client, errors, resources
from workron_controller.kube.client import ApiClient, RetryingCalls
from workron_controller.kube.resources import ResourcePath

_log = structlog.get_logger(__name__)


class CustomObjects:
    """The objects in some namespaces, or in the whole cluster if none is named."""

    def __init__(
        self, api: ApiClient, retrying: RetryingCalls, namespaces: Collection[str]
    ) -> None:
        self._api = api
        self._retrying = retrying
        self._namespaces = frozenset(namespaces)
        self._forbidden: set[str] = set()

    async def list_pages(self, kind: Kind) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
        """Yield all objects of a kind in pages, except in namespaces that are forbidden to us.

        Raises ApiError rather than leave any other out. An object may come twice.
        """
        namespaces: list[str | None] = [*sorted(self._namespaces)] or [None]
        for namespace in namespaces:
            path = resources.BY_KIND[kind].at(namespace)
            try:
                async for page in client.list_pages(self._api, self._retrying, path):
                    yield page.items
            except errors.ForbiddenError as error:
                if namespace is None:
                    raise
                self._forbidden.add(namespace)
                _log.warning("namespace not listed", namespace=namespace, error=str(error))

    def covers(self, namespace: str) -> bool:
        """Return whether a list has the objects of this namespace."""
        return not self._namespaces or namespace in self._namespaces - self._forbidden

    async def find_uid(self, kind: Kind, namespace: str, name: str) -> UUID | None:
        """Return the uid of the object with this name; None if there is none."""
        try:
            found = await self._api.get(resources.BY_KIND[kind].at(namespace, name))
        except errors.ObjectNotFoundError:
            return None
        return UUID(found["metadata"]["uid"])

    async def is_terminating(self, namespace: str) -> bool:
        """Return whether a namespace is being deleted, as far as we may know."""
        try:
            found = await self._api.get(resources.NAMESPACES.at(None, namespace))
        except errors.ObjectNotFoundError:
            return True
        except errors.ForbiddenError as error:
            # The deletion of a namespace also deletes the role binding that lets us read it.
            _log.warning("namespace not read", namespace=namespace, error=str(error))
            return bool(self._namespaces)
        except errors.ApiError as error:
            _log.warning("namespace not read", namespace=namespace, error=str(error))
            return False
        return "deletionTimestamp" in found["metadata"]

    async def write_status(self, cached: CachedObject, status: Mapping[str, Any]) -> None:
        """Replace the status of an object."""
        await self._api.replace_status(_path(cached, "status"), str(cached.uid), status)

    async def delete(self, cached: CachedObject) -> None:
        """Delete an object, unless it was deleted already."""
        try:
            await self._api.delete(_path(cached), str(cached.uid))
        except errors.ObjectNotFoundError:
            return


def _path(cached: CachedObject, subresource: str | None = None) -> ResourcePath:
    one = cached.latest
    return resources.BY_KIND[one.kind].at(one.namespace, one.name, subresource)
