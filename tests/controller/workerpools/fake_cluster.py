"""A cluster in memory for tests of pools: its API server and its own controllers.

`FakeCluster` stands in for `ApiClient`. The controllers of the cluster act only when a test calls
`run_controllers`: ReplicaSets create and delete pods by the rules of Kubernetes, and objects
without owner are removed.
"""

import asyncio
import copy
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from workron_controller.kube import errors, resources
from workron_controller.kube.client import ApiClient
from workron_controller.kube.resources import ApiResource, ResourcePath
from workron_controller.workerpools import observed

Raw = dict[str, Any]
Key = tuple[ApiResource, str | None, str]


@dataclass
class Fault:
    """An error that the next requests raise."""

    verb: str
    resource: ApiResource
    error: Exception
    times: float
    namespace: str | None


@dataclass
class FakeCluster(ApiClient):
    """The objects, and the faults of the next requests; no request uses the network."""

    objects: dict[Key, Raw] = field(default_factory=dict)
    requests: list[tuple[str, ResourcePath]] = field(default_factory=list)
    forbidden: set[str] = field(default_factory=set)
    """Namespaces in which only WorkerPools may be listed, and their status written."""
    unanswered: set[str] = field(default_factory=set)
    """Namespaces in which requests wait forever."""
    quota: float = float("inf")
    """Pods in each namespace."""
    _expires_list: bool = False
    _faults: list[Fault] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def fail(
        self,
        verb: str,
        resource: ApiResource,
        error: Exception,
        times: float = 1,
        namespace: str | None = None,
    ) -> None:
        self._faults.append(Fault(verb, resource, error, times, namespace))

    def stop_failing(self) -> None:
        self._faults.clear()

    def add(self, resource: ApiResource, namespace: str | None, name: str, **body: Any) -> Raw:
        """Create an object, as another client."""
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{next(self._numbers)}"}
        created = {"metadata": {**metadata, "generation": 1, **body.pop("metadata", {})}, **body}
        self.objects[resource, namespace, name] = created
        return created

    def apply_pool(self, namespace: str, name: str, **spec: Any) -> Raw:
        """Create or edit a WorkerPool, as a user."""
        key = resources.WORKERPOOLS, namespace, name
        if (found := self.objects.get(key)) is not None:
            found["spec"] = spec
            found["metadata"]["generation"] += 1
            return found
        version = "workron.dev/v1alpha1"
        return self.add(*key, spec=spec, apiVersion=version, kind="WorkerPool")

    def objects_of(self, resource: ApiResource, namespace: str | None = None) -> list[Raw]:
        found = [one for (kind, _, _), one in self.objects.items() if kind == resource]
        return [one for one in found if namespace in {None, one["metadata"]["namespace"]}]

    def pods(self, namespace: str = "lab") -> list[Raw]:
        return self.objects_of(resources.PODS, namespace)

    def replica_counts(self, namespace: str = "lab") -> list[int]:
        """Return the desired size of each ReplicaSet."""
        sets = self.objects_of(resources.REPLICA_SETS, namespace)
        return [one["spec"]["replicas"] for one in sets]

    def writes(self) -> list[str]:
        return [f"{verb} {path}" for verb, path in self.requests if verb not in {"get", "list"}]

    # The requests of `ApiClient`.

    async def get(self, path: ResourcePath, /) -> Raw:
        await self._begin("get", path)
        return copy.deepcopy(self._find(path))

    async def list_page(self, path: ResourcePath, parameters: Mapping[str, str], /) -> Raw:
        """Return one object on the first page and the others on the second, which may expire."""
        await self._begin("list", path)
        labels = parameters.get("labelSelector", "")
        wanted = dict(one.split("=") for one in labels.split(",") if one)
        found = [
            copy.deepcopy(one)
            for one in self.objects_of(path.resource, path.namespace)
            if wanted.items() <= one["metadata"].get("labels", {}).items()
        ]
        metadata = {"resourceVersion": "1"}
        if "continue" not in parameters:
            token = {"continue": "more"} if len(found) > 1 else {}
            return {"items": found[:1], "metadata": metadata | token}
        self._expires_list = not self._expires_list
        if self._expires_list:
            raise errors.ExpiredError("410 the list has expired")
        return {"items": found[1:], "metadata": metadata}

    async def create(self, path: ResourcePath, body: Mapping[str, Any], /) -> Raw:
        await self._begin("create", path)
        body = copy.deepcopy(dict(body))
        name = body["metadata"]["name"]
        if (path.resource, path.namespace, name) in self.objects:
            raise errors.ConflictError(f"create {path}: 409 {name} already exists")
        return self.add(path.resource, path.namespace, name, **body)

    async def patch(self, path: ResourcePath, body: Mapping[str, Any], /) -> Raw:
        await self._begin("patch", path)
        found = self._find(path)
        if body["metadata"]["uid"] != found["metadata"]["uid"]:
            raise errors.ConflictError(f"patch {path}: 409 another uid")
        _merge(found, body)
        return found

    async def replace_status(
        self, path: ResourcePath, uid: str, status: Mapping[str, Any], /
    ) -> None:
        await self._begin("status", path)
        found = self._find(path)
        assert found["metadata"]["uid"] == uid
        found["status"] = copy.deepcopy(dict(status))

    async def apply(self, path: ResourcePath, body: Mapping[str, Any], /) -> Raw:
        await self._begin("apply", path)
        assert path.name is not None
        key = path.resource, path.namespace, path.name
        found = self.objects.get(key) or self.add(*key)
        _merge(found, copy.deepcopy(dict(body)))
        return found

    async def delete(self, path: ResourcePath, uid: str, /) -> None:
        await self._begin("delete", path)
        found = self._find(path)
        assert found["metadata"]["uid"] == uid
        del self.objects[path.resource, path.namespace, str(path.name)]

    async def _begin(self, verb: str, path: ResourcePath) -> None:
        """Record a request, and raise the error that it meets."""
        self.requests.append((verb, path))
        if path.namespace in self.unanswered:
            await asyncio.get_running_loop().create_future()
        for fault in self._faults:
            is_match = (fault.verb, fault.resource) == (verb, path.resource)
            if is_match and fault.times > 0 and fault.namespace in {None, path.namespace}:
                fault.times -= 1
                raise fault.error
        is_allowed = path.resource == resources.WORKERPOOLS and verb in {"list", "status"}
        if path.namespace in self.forbidden and not is_allowed:
            raise errors.ForbiddenError(f"{verb} {path}: 403 forbidden")

    def _find(self, path: ResourcePath) -> Raw:
        found = self.objects.get((path.resource, path.namespace, str(path.name)))
        if found is None:
            raise errors.ObjectNotFoundError(f"{path}: 404 not found")
        return found

    # The controllers of the cluster.

    def run_controllers(self) -> None:
        """Scale each ReplicaSet, and remove objects whose owner does not exist."""
        for one in self.objects_of(resources.REPLICA_SETS):
            self._scale(one)
        uids = {one["metadata"]["uid"] for one in self.objects.values()}
        for key, one in list(self.objects.items()):
            owners = one["metadata"].get("ownerReferences", [])
            if owners and not any(owner["uid"] in uids for owner in owners):
                del self.objects[key]

    def _scale(self, one: Raw) -> None:
        metadata = one["metadata"]
        own = [pod for pod in self.pods(metadata["namespace"]) if _owner(pod) == metadata["uid"]]
        live = sorted(filter(_is_live, own), key=_deletion_rank)
        excess = len(live) - one["spec"]["replicas"]
        for pod in live[: max(0, excess)]:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        one["status"] = {}
        for _ in range(-excess):
            if len(self.pods(metadata["namespace"])) >= self.quota:
                failure = {"type": "ReplicaFailure", "status": "True"}
                one["status"] = {"conditions": [{**failure, "message": "exceeded quota: small"}]}
                return
            self._create_pod(one)

    def _create_pod(self, one: Raw) -> None:
        owner, template = one["metadata"], one["spec"]["template"]
        number = next(self._numbers)
        metadata = {
            "labels": dict(template["metadata"]["labels"]),
            "ownerReferences": [{"uid": owner["uid"], "controller": True}],
            "creationTimestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
        }
        name = f"{owner['name']}-{number}"
        spec = copy.deepcopy(template["spec"])
        self.add(resources.PODS, owner["namespace"], name, metadata=metadata, spec=spec, status={})


def set_ready(pod: Raw, node: str = "node") -> None:
    """Assign a pod to a node and make it ready."""
    pod["spec"]["nodeName"] = node
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def set_unready(pod: Raw) -> None:
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]


def set_ended(pod: Raw) -> None:
    """Report the end of all containers, as the kubelet does."""
    state = {"terminated": {"exitCode": 137, "reason": "Error"}}
    statuses = [{"name": name, "state": state} for name in ("runner", "agent")]
    pod["status"] = {"phase": "Failed", "containerStatuses": statuses}


def set_waiting(pod: Raw, reason: str, message: str = "") -> None:
    """Report that the runner's container waits, as the kubelet does."""
    state = {"waiting": {"reason": reason, "message": message}}
    pod["status"] = {
        "phase": "Pending",
        "initContainerStatuses": [{"name": "runner", "state": state}],
    }


def conditions(raw: Raw) -> dict[str, str]:
    """Return the reason of each condition; `not Ready` stands for a Ready that is False."""
    return {
        one["type"] if one["status"] == "True" else f"not {one['type']}": one["reason"]
        for one in raw.get("status", {}).get("conditions", [])
    }


def _owner(pod: Raw) -> str:
    owner: str = pod["metadata"]["ownerReferences"][0]["uid"]
    return owner


def _is_live(pod: Raw) -> bool:
    is_finished = pod["status"].get("phase") in {"Failed", "Succeeded"}
    return not is_finished and "deletionTimestamp" not in pod["metadata"]


def _deletion_rank(pod: Raw) -> tuple[Any, ...]:
    """Order pods as the ReplicaSet controller does, by the fields that exist here."""
    conditions = pod["status"].get("conditions", [])
    is_ready = {"type": "Ready", "status": "True"} in conditions
    cost = int(pod["metadata"].get("annotations", {}).get(observed.DELETION_COST, 0))
    return "nodeName" in pod["spec"], is_ready, cost


def _merge(target: Raw, patch: Mapping[str, Any]) -> None:
    """Apply a merge patch, in which null removes a field."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif not isinstance(value, dict):
            target[key] = value
        else:
            if not isinstance(target.get(key), dict):
                target[key] = {}
            _merge(target[key], value)
