"""The objects of ours in one cluster, as far as this operator may see them.

Between `api`, which knows requests, and the parts that know what they want: Jobs and Workflows to
be listed, told and deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog

from workron_controller.kube import client, errors, resources

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence

    from workron.core.plan import Kind
    from workron_controller.jobs.cache import CachedObject
    from workron_controller.kube.client import ApiClient, RetryingCalls
    from workron_controller.kube.resources import ResourcePath


_log = structlog.get_logger(__name__)


class CustomObjects:
    """What is in some namespaces, or, if none is named, in all."""

    def __init__(
        self, server: ApiClient, retrying: RetryingCalls, namespaces: Collection[str]
    ) -> None:
        self._server = server
        self._retrying = retrying
        self._namespaces = frozenset(namespaces)
        self._closed: set[str] = set()

    async def objects(self, kind: Kind) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
        """List all of a kind, some at a time; raises rather than leave any out that may be seen."""
        resource = resources.BY_KIND[kind]
        if not self._namespaces:
            async for page in client.list_pages(self._server, self._retrying, resource.at()):
                # One that begins anew gives some of them twice, which does no harm.
                yield page.items
        for namespace in sorted(self._namespaces):
            try:
                place = resource.at(namespace)
                async for page in client.list_pages(self._server, self._retrying, place):
                    yield page.items
            except errors.ForbiddenError as closed:
                # The others are none the worse for it.
                self._closed.add(namespace)
                _log.warning("namespace is closed to us", namespace=namespace, error=str(closed))

    def covers(self, namespace: str) -> bool:
        """Tell whether objects of this namespace are among them."""
        return not self._namespaces or namespace in self._namespaces - self._closed

    async def uid_of(self, kind: Kind, namespace: str, name: str) -> UUID | None:
        """Ask for one by its name."""
        try:
            found = await self._server.get(resources.BY_KIND[kind].at(namespace, name))
        except errors.ObjectNotFoundError:
            return None
        return UUID(found["metadata"]["uid"])

    async def tell(self, seen: CachedObject, status: Mapping[str, Any]) -> None:
        """Write the status of an object."""
        await self._server.set_status(_place(seen, "status"), str(seen.uid), status)

    async def delete(self, seen: CachedObject) -> None:
        """Delete an object; that it is gone already is as good."""
        try:
            await self._server.delete(_place(seen), str(seen.uid))
        except errors.ObjectNotFoundError:
            return


def _place(seen: CachedObject, subresource: str | None = None) -> ResourcePath:
    return resources.BY_KIND[seen.kind].at(seen.namespace, seen.name, subresource)
