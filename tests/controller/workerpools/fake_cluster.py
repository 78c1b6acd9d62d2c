"""A cluster in memory, as far as pools go: objects, refusals, and the controllers that make pods.

Stands in for `api.server`. What the cluster does by itself happens when a test says `work`: sets
make and end pods by the rules of Kubernetes, and what has lost its owner goes.
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
    """What is answered instead, so many times."""

    verb: str
    resource: ApiResource
    error: Exception
    times: float
    namespace: str | None


@dataclass
class FakeCluster(ApiClient):
    """The objects, and what the next requests meet."""

    objects: dict[Key, Raw] = field(default_factory=dict)
    asked: list[tuple[str, ResourcePath]] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    """Namespaces where only WorkerPools may be looked at, and told how they stand."""
    silent: set[str] = field(default_factory=set)
    """Namespaces of which no answer comes."""
    quota: float = float("inf")
    """Pods, in each namespace."""
    _forgets: bool = False
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

    def put(self, resource: ApiResource, namespace: str | None, name: str, **body: Any) -> Raw:
        """Have somebody else make an object."""
        about = {"name": name, "namespace": namespace, "uid": f"uid-{next(self._numbers)}"}
        made = {"metadata": {**about, "generation": 1, **body.pop("metadata", {})}, **body}
        self.objects[resource, namespace, name] = made
        return made

    def pool(self, namespace: str, name: str, **spec: Any) -> Raw:
        """Have somebody apply a WorkerPool, or edit it."""
        key = resources.WORKERPOOLS, namespace, name
        if (there := self.objects.get(key)) is not None:
            there["spec"] = spec
            there["metadata"]["generation"] += 1
            return there
        version = "workron.dev/v1alpha1"
        return self.put(*key, spec=spec, apiVersion=version, kind="WorkerPool")

    def all(self, resource: ApiResource, namespace: str | None = None) -> list[Raw]:
        found = [one for (kind, _, _), one in self.objects.items() if kind == resource]
        return [one for one in found if namespace in {None, one["metadata"]["namespace"]}]

    def pods(self, namespace: str = "lab") -> list[Raw]:
        return self.all(resources.PODS, namespace)

    def replicas(self, namespace: str = "lab") -> list[int]:
        """Tell of each set how big it is to be."""
        return [one["spec"]["replicas"] for one in self.all(resources.REPLICA_SETS, namespace)]

    def writes(self) -> list[str]:
        return [f"{verb} {place}" for verb, place in self.asked if verb not in {"get", "list"}]

    # What `api.server` does.

    async def get(self, place: ResourcePath, /) -> Raw:
        await self._meet("get", place)
        return copy.deepcopy(self._found(place))

    async def list_page(self, place: ResourcePath, parameters: Mapping[str, str], /) -> Raw:
        """Give one object, and then the others, but only when the list was begun anew."""
        await self._meet("list", place)
        labels = parameters.get("labelSelector", "")
        wanted = dict(one.split("=") for one in labels.split(",") if one)
        found = [
            copy.deepcopy(one)
            for one in self.all(place.resource, place.namespace)
            if wanted.items() <= one["metadata"].get("labels", {}).items()
        ]
        about = {"resourceVersion": "1"}
        if "continue" not in parameters:
            more = {"continue": "more"} if len(found) > 1 else {}
            return {"items": found[:1], "metadata": about | more}
        self._forgets = not self._forgets
        if self._forgets:
            raise errors.ExpiredError("410 the list is forgotten")
        return {"items": found[1:], "metadata": about}

    async def create(self, place: ResourcePath, body: Mapping[str, Any], /) -> Raw:
        await self._meet("create", place)
        body = copy.deepcopy(dict(body))
        name = body["metadata"]["name"]
        if (place.resource, place.namespace, name) in self.objects:
            raise errors.ConflictError(f"create {place}: 409 {name} already exists")
        return self.put(place.resource, place.namespace, name, **body)

    async def patch(self, place: ResourcePath, body: Mapping[str, Any], /) -> Raw:
        await self._meet("patch", place)
        found = self._found(place)
        if body["metadata"]["uid"] != found["metadata"]["uid"]:
            raise errors.ConflictError(f"patch {place}: 409 another uid")
        _merge(found, body)
        return found

    async def replace_status(
        self, place: ResourcePath, uid: str, status: Mapping[str, Any], /
    ) -> None:
        await self._meet("status", place)
        found = self._found(place)
        assert found["metadata"]["uid"] == uid
        found["status"] = copy.deepcopy(dict(status))

    async def apply(self, place: ResourcePath, body: Mapping[str, Any], /) -> Raw:
        await self._meet("apply", place)
        assert place.name is not None
        key = place.resource, place.namespace, place.name
        found = self.objects.get(key) or self.put(*key)
        _merge(found, copy.deepcopy(dict(body)))
        return found

    async def delete(self, place: ResourcePath, uid: str, /) -> None:
        await self._meet("delete", place)
        found = self._found(place)
        assert found["metadata"]["uid"] == uid
        del self.objects[place.resource, place.namespace, str(place.name)]

    async def _meet(self, verb: str, place: ResourcePath) -> None:
        self.asked.append((verb, place))
        if place.namespace in self.silent:
            await asyncio.get_running_loop().create_future()
        for fault in self._faults:
            is_meant = (fault.verb, fault.resource) == (verb, place.resource)
            if is_meant and fault.times > 0 and fault.namespace in {None, place.namespace}:
                fault.times -= 1
                raise fault.error
        is_open = place.resource == resources.WORKERPOOLS and verb in {"list", "status"}
        if place.namespace in self.closed and not is_open:
            raise errors.ForbiddenError(f"{verb} {place}: 403 forbidden")

    def _found(self, place: ResourcePath) -> Raw:
        found = self.objects.get((place.resource, place.namespace, str(place.name)))
        if found is None:
            raise errors.ObjectNotFoundError(f"{place}: 404 not found")
        return found

    # What the cluster does by itself.

    def work(self) -> None:
        """Have each set make or end pods, and what has lost its owner go."""
        for one in self.all(resources.REPLICA_SETS):
            self._tend(one)
        uids = {one["metadata"]["uid"] for one in self.objects.values()}
        for key, one in list(self.objects.items()):
            owners = one["metadata"].get("ownerReferences", [])
            if owners and not any(owner["uid"] in uids for owner in owners):
                del self.objects[key]

    def _tend(self, one: Raw) -> None:
        about = one["metadata"]
        own = [pod for pod in self.pods(about["namespace"]) if _owner(pod) == about["uid"]]
        live = sorted(filter(_is_live, own), key=_rank)
        excess = len(live) - one["spec"]["replicas"]
        for pod in live[: max(0, excess)]:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        one["status"] = {}
        for _ in range(-excess):
            if len(self.pods(about["namespace"])) >= self.quota:
                failure = {"type": "ReplicaFailure", "status": "True"}
                one["status"] = {"conditions": [{**failure, "message": "exceeded quota: small"}]}
                return
            self._make_pod(one)

    def _make_pod(self, one: Raw) -> None:
        about, template = one["metadata"], one["spec"]["template"]
        number = next(self._numbers)
        metadata = {
            "labels": dict(template["metadata"]["labels"]),
            "ownerReferences": [{"uid": about["uid"], "controller": True}],
            "creationTimestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
        }
        name = f"{about['name']}-{number}"
        spec = copy.deepcopy(template["spec"])
        self.put(resources.PODS, about["namespace"], name, metadata=metadata, spec=spec, status={})


def place_on(pod: Raw, node: str = "node") -> None:
    """Have a node run it, and its agent be ready."""
    pod["spec"]["nodeName"] = node
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def unready(pod: Raw) -> None:
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]


def ended(pod: Raw) -> None:
    """Have its kubelet tell that all of it has ended."""
    state = {"terminated": {"exitCode": 137, "reason": "Error"}}
    names = ("runner", "agent")
    statuses = [{"name": name, "state": state} for name in names]
    pod["status"] = {"phase": "Failed", "containerStatuses": statuses}


def waits(pod: Raw, reason: str, message: str = "") -> None:
    """Have its runner's container wait for something."""
    state = {"waiting": {"reason": reason, "message": message}}
    pod["status"] = {
        "phase": "Pending",
        "initContainerStatuses": [{"name": "runner", "state": state}],
    }


def conditions(raw: Raw) -> dict[str, str]:
    """Tell of each condition that holds its reason, and of Ready also if it does not."""
    return {
        one["type"] if one["status"] == "True" else f"not {one['type']}": one["reason"]
        for one in raw.get("status", {}).get("conditions", [])
    }


def _owner(pod: Raw) -> str:
    owner: str = pod["metadata"]["ownerReferences"][0]["uid"]
    return owner


def _is_live(pod: Raw) -> bool:
    is_over = pod["status"].get("phase") in {"Failed", "Succeeded"}
    return not is_over and "deletionTimestamp" not in pod["metadata"]


def _rank(pod: Raw) -> tuple[Any, ...]:
    """Order them as the controller of sets does, as far as that goes by what is known here."""
    conditions = pod["status"].get("conditions", [])
    is_ready = {"type": "Ready", "status": "True"} in conditions
    cost = int(pod["metadata"].get("annotations", {}).get(observed.DELETION_COST, 0))
    return "nodeName" in pod["spec"], is_ready, cost


def _merge(into: Raw, patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = (
                {k: v for k, v in value.items() if v is not None}
                if isinstance(value, dict)
                else value
            )
