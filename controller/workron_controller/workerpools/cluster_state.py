"""What is asked of the API server for one pool: to see what there is of it, and to change that.

Called by `tending`. Whatever is changed or deleted is named by its uid as well, so that a namesake
that came after it is let be.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib import parse

from workron_controller.kube import client, errors, resources
from workron_controller.workerpools import manifests, observed, rollout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron_controller.kube.client import RetryingCalls
    from workron_controller.kube.resources import ResourcePath
    from workron_controller.workerpools.manifests import PoolNames
    from workron_controller.workerpools.observed import ObservedPod, ObservedPool
    from workron_controller.workerpools.rollout import RolloutStep


class PoolApiClient(Protocol):
    """What of `api.server` is needed here; raises one of `api.errors`."""

    async def get(self, place: ResourcePath, /) -> Mapping[str, Any]:
        """Read one object."""

    async def part(
        self, place: ResourcePath, parameters: Mapping[str, str], /
    ) -> Mapping[str, Any]:
        """Read a part of a list."""

    async def create(self, place: ResourcePath, body: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Make an object in this collection."""

    async def patch(self, place: ResourcePath, body: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Change the fields that the body names."""

    async def set_status(
        self, place: ResourcePath, uid: str, status: Mapping[str, Any], /
    ) -> object:
        """Write the whole status of the object with this uid."""

    async def apply(self, place: ResourcePath, body: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Make the object, or make what we said of it before into this."""

    async def delete(self, place: ResourcePath, uid: str, /) -> None:
        """Delete the object with this uid."""


@dataclass(frozen=True, slots=True)
class PoolCredentials:
    """What a pool's agents are let in by."""

    url: str
    token: str

    @property
    def password(self) -> str | None:
        """Give the password in the URL, if there is one."""
        password = parse.urlsplit(self.url).password
        return None if password is None else parse.unquote(password)


class PoolCluster:
    """One pool's part of the cluster."""

    def __init__(self, api: PoolApiClient, retrying: RetryingCalls, pool: PoolNames) -> None:
        self._api = api
        self._retrying = retrying
        self._pool = pool

    async def look(self) -> ObservedPool:
        """See all that there is of it."""
        namespace, labels = self._pool.namespace, self._pool.selector
        sets, pods = [
            await list_all(self._api, self._retrying, resource.at(namespace), labels)
            for resource in (resources.REPLICA_SETS, resources.PODS)
        ]
        return observed.observe(self._pool, sets, pods)

    async def node(self, name: str) -> Mapping[str, Any] | None:
        """Ask for a node; None: there is none of that name."""
        try:
            return await self._api.get(resources.NODES.at(name=name))
        except errors.ObjectNotFoundError:
            return None
        except errors.ForbiddenError:
            # Who may not look at nodes has one proof less, and all else goes on.
            return {}

    async def credentials(self) -> PoolCredentials | None:
        """Read the Secret; None: there is none, or none that can be used."""
        place = resources.SECRETS.at(self._pool.namespace, self._pool.secret)
        try:
            found = (await self._api.get(place)).get("data") or {}
            url, token = (
                _decoded(found[key]) for key in (manifests.STORE_KEY, manifests.TOKEN_KEY)
            )
        except (errors.ObjectNotFoundError, KeyError, ValueError):
            return None
        return PoolCredentials(url, token)

    async def keep(self, credentials: PoolCredentials) -> None:
        """Write the Secret."""
        place = resources.SECRETS.at(self._pool.namespace, self._pool.secret)
        await self._api.apply(
            place, manifests.secret(self._pool, credentials.url, credentials.token)
        )

    async def carry_out(self, step: RolloutStep, template: Mapping[str, Any]) -> None:
        """Change what a step says."""
        sets = resources.REPLICA_SETS
        namespace = self._pool.namespace
        match step:
            case rollout.CreateReplicaSet(replicas):
                await self._make(manifests.replica_set(self._pool, template, replicas))
            case rollout.ResizeReplicaSet(one, replicas):
                body = {"metadata": {"uid": one.uid}, "spec": {"replicas": replicas}}
                await self._api.patch(sets.at(namespace, one.name), body)
            case rollout.ReplacePod(pod):
                await self.bury(pod)
            case rollout.RemoveReplicaSet(one):
                await self._api.delete(sets.at(namespace, one.name), one.uid)
            case rollout.ChoosePodToDelete(pod, _):
                await self._price(pod, str(rollout.DELETION_COST_CHOSEN))
            case rollout.SparePod(pod):
                await self._price(pod, None)

    async def bury(self, pod: ObservedPod) -> None:
        """Delete a pod of which nothing runs any more; that it is gone already is as good."""
        try:
            await self._api.delete(resources.PODS.at(self._pool.namespace, pod.name), pod.uid)
        except errors.ObjectNotFoundError:
            return

    async def tell(self, status: Mapping[str, Any]) -> None:
        """Write the pool's own status."""
        place = resources.WORKERPOOLS.at(self._pool.namespace, self._pool.name, "status")
        await self._api.set_status(place, self._pool.uid, status)

    async def _make(self, body: Mapping[str, Any]) -> None:
        sets, namespace = resources.REPLICA_SETS, self._pool.namespace
        try:
            await self._api.create(sets.at(namespace), body)
        except errors.ConflictError:
            name = body["metadata"]["name"]
            owners = (await self._api.get(sets.at(namespace, name)))["metadata"]
            if not any(one["kind"] == "WorkerPool" for one in owners.get("ownerReferences") or ()):
                raise errors.AlreadyExistsError(
                    f"there is a ReplicaSet {name} in namespace {namespace} that is no WorkerPool's"
                    f" any more: delete it by `kubectl delete rs/{name} --namespace {namespace}`"
                ) from None
            # Another leader was faster, or that of a deleted namesake is about to go with it.
            raise

    async def _price(self, pod: ObservedPod, cost: str | None) -> None:
        body = {"metadata": {"uid": pod.uid, "annotations": {observed.DELETION_COST: cost}}}
        place = resources.PODS.at(self._pool.namespace, pod.name)
        try:
            await self._api.patch(place, body)
        except errors.ObjectNotFoundError:
            # It went by itself.
            return


async def list_all(
    api: PoolApiClient, retrying: RetryingCalls, place: ResourcePath, labels: str = ""
) -> list[Mapping[str, Any]]:
    """Read a list to its end."""
    found: list[Mapping[str, Any]] = []
    async for page in client.list_pages(api, retrying, place, client.ListSelector(labels)):
        found = [*([] if page.is_first else found), *page.items]
    return found


def _decoded(text: str) -> str:
    return base64.b64decode(text, validate=True).decode()
