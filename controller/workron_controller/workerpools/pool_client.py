"""The requests of one pool to the API server: observe its objects, and change them.

Every change names the uid of the object too, so that it never reaches a new object of that name.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib import parse

from workron_controller.kube import client, errors, resources
from workron_controller.workerpools import manifests, observed, rollout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron_controller.kube.client import KubeApi, RetryingCalls
    from workron_controller.workerpools.manifests import PoolNames
    from workron_controller.workerpools.observed import ObservedPod, ObservedPool
    from workron_controller.workerpools.rollout import RolloutStep


@dataclass(frozen=True, slots=True)
class PoolCredentials:
    """The content of the Secret by which the agents of a pool open the store."""

    url: str
    token: str

    @property
    def password(self) -> str | None:
        """The password in the URL, if it has one."""
        password = parse.urlsplit(self.url).password
        return None if password is None else parse.unquote(password)


class PoolClient:
    """The objects of one pool."""

    def __init__(self, api: KubeApi, retrying: RetryingCalls, pool: PoolNames) -> None:
        self._api = api
        self._retrying = retrying
        self._pool = pool

    async def observe(self) -> ObservedPool:
        """List the ReplicaSets and pods."""
        namespace, labels = self._pool.namespace, self._pool.selector
        replica_sets, pods = [
            await client.list_all(self._api, self._retrying, resource.at(namespace), labels)
            for resource in (resources.REPLICA_SETS, resources.PODS)
        ]
        return observed.observe(self._pool, replica_sets, pods)

    async def get_node(self, name: str) -> Mapping[str, Any] | None:
        """Return a node; None if it does not exist, and empty if we are not allowed to read it."""
        try:
            return await self._api.get(resources.NODES.at(name=name))
        except errors.ObjectNotFoundError:
            return None
        except errors.ForbiddenError:
            # Access to nodes is optional: it only proves faster that a worker is dead.
            return {}

    async def read_credentials(self) -> PoolCredentials | None:
        """Read the Secret; None if it is missing or malformed."""
        path = resources.SECRETS.at(self._pool.namespace, self._pool.secret)
        try:
            data = (await self._api.get(path)).get("data") or {}
            url, token = (_decode(data[key]) for key in (manifests.STORE_KEY, manifests.TOKEN_KEY))
        except (errors.ObjectNotFoundError, KeyError, ValueError):
            return None
        return PoolCredentials(url, token)

    async def write_credentials(self, credentials: PoolCredentials) -> None:
        """Write the Secret."""
        path = resources.SECRETS.at(self._pool.namespace, self._pool.secret)
        await self._api.apply(
            path, manifests.secret(self._pool, credentials.url, credentials.token)
        )

    async def write_status(self, status: Mapping[str, Any]) -> None:
        """Replace the status of the WorkerPool."""
        path = resources.WORKERPOOLS.at(self._pool.namespace, self._pool.name, "status")
        await self._api.replace_status(path, self._pool.uid, status)

    async def delete_pod(self, pod: ObservedPod) -> None:
        """Delete a pod, unless it was deleted already."""
        try:
            await self._api.delete(resources.PODS.at(self._pool.namespace, pod.name), pod.uid)
        except errors.ObjectNotFoundError:
            return

    async def apply_step(self, step: RolloutStep, template: Mapping[str, Any]) -> None:
        """Carry out a step of a rollout."""
        namespace = self._pool.namespace
        match step:
            case rollout.CreateReplicaSet(replicas):
                await self._create(manifests.replica_set(self._pool, template, replicas))
            case rollout.ScaleReplicaSet(one, replicas):
                body = {"metadata": {"uid": one.uid}, "spec": {"replicas": replicas}}
                await self._api.patch(resources.REPLICA_SETS.at(namespace, one.name), body)
            case rollout.DeleteReplicaSet(one):
                await self._api.delete(resources.REPLICA_SETS.at(namespace, one.name), one.uid)
            case rollout.DeletePod(pod):
                await self.delete_pod(pod)
            case rollout.MarkPodForDeletion(pod, _):
                await self._set_deletion_cost(pod, str(rollout.MARKED_DELETION_COST))
            case rollout.UnmarkPod(pod):
                await self._set_deletion_cost(pod, None)

    async def _create(self, body: Mapping[str, Any]) -> None:
        namespace, name = self._pool.namespace, body["metadata"]["name"]
        try:
            await self._api.create(resources.REPLICA_SETS.at(namespace), body)
        except errors.ConflictError:
            path = resources.REPLICA_SETS.at(namespace, name)
            owners = (await self._api.get(path))["metadata"].get("ownerReferences") or ()
            if not any(one["kind"] == "WorkerPool" for one in owners):
                raise errors.ForeignObjectError(
                    f"the ReplicaSet {name} in namespace {namespace} belongs to no WorkerPool;"
                    f" delete it: `kubectl delete rs/{name} --namespace {namespace}`"
                ) from None
            # Another leader was faster, or it belongs to a deleted pool and is about to go.
            raise

    async def _set_deletion_cost(self, pod: ObservedPod, cost: str | None) -> None:
        body = {"metadata": {"uid": pod.uid, "annotations": {observed.DELETION_COST: cost}}}
        path = resources.PODS.at(self._pool.namespace, pod.name)
        try:
            await self._api.patch(path, body)
        except errors.ObjectNotFoundError:
            # It has ended.
            return


def _decode(text: str) -> str:
    return base64.b64decode(text, validate=True).decode()
