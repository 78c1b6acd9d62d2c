"""The kinds of objects that the fake knows, and what its discovery says of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workron_controller.kube.resources import ApiResource

Json = dict[str, Any]

_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_WORKRON = "workron.dev"


@dataclass(frozen=True)
class Kind:
    """One kind of object."""

    resource: ApiResource
    name: str
    singular: str
    is_namespaced: bool = True
    has_status: bool = False
    """A status of its own path, and a generation that its spec counts."""
    fields: tuple[str, ...] = ()
    """What a field selector may name, beyond name and namespace."""

    @property
    def version(self) -> str:
        """What an object of it has as its apiVersion."""
        group = self.resource.group
        return f"{group}/{self.resource.version}" if group else self.resource.version


def _kind(group: str, plural: str, name: str, **more: Any) -> Kind:
    version = "v1alpha1" if group == _WORKRON else "v1"
    return Kind(ApiResource(group, version, plural), name, plural.removesuffix("s"), **more)


JOB = _kind(_WORKRON, "workronjobs", "Job", has_status=True, fields=("spec.pool", "status.phase"))
WORKFLOW = _kind(_WORKRON, "workronflows", "Workflow", has_status=True)
POOL = _kind(_WORKRON, "workerpools", "WorkerPool", has_status=True)
LEASE = _kind("coordination.k8s.io", "leases", "Lease")
POD = _kind("", "pods", "Pod", has_status=True, fields=("spec.nodeName", "status.phase"))
NODE = _kind("", "nodes", "Node", has_status=True, is_namespaced=False)
SECRET = _kind("", "secrets", "Secret")
CONFIG_MAP = _kind("", "configmaps", "ConfigMap")
EVENT = _kind("", "events", "Event")
NAMESPACE = _kind("", "namespaces", "Namespace", has_status=True, is_namespaced=False)
REPLICA_SET = _kind("apps", "replicasets", "ReplicaSet", has_status=True)
DEFINITION = _kind(
    "apiextensions.k8s.io",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    has_status=True,
    is_namespaced=False,
)

KINDS = frozenset(
    {
        JOB, WORKFLOW, POOL, LEASE, POD, NODE, SECRET, CONFIG_MAP, EVENT, NAMESPACE, REPLICA_SET,
        DEFINITION,
    }
)  # fmt: skip


def groups(kinds: Iterable[Kind]) -> Json:
    """Answer `/apis`."""
    named = {(kind.resource.group, kind.resource.version) for kind in kinds if kind.resource.group}
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(group, version) for group, version in sorted(named)],
    }


def _group(group: str, version: str) -> Json:
    one = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [one], "preferredVersion": one}


def resources(kinds: Iterable[Kind], group: str, version: str) -> Json | None:
    """Answer `/apis/GROUP/VERSION`, if there is anything in it."""
    here = [one for one in kinds if (one.resource.group, one.resource.version) == (group, version)]
    if not here:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}".lstrip("/"),
        "resources": [entry for kind in here for entry in _entries(kind)],
    }


def _entries(kind: Kind) -> list[Json]:
    common = {"namespaced": kind.is_namespaced, "kind": kind.name}
    name = kind.resource.plural
    entries = [{**common, "name": name, "singularName": kind.singular, "verbs": _VERBS}]
    if kind.has_status:
        part = {"name": f"{name}/status", "singularName": "", "verbs": ["get", "patch", "update"]}
        entries.append({**common, **part})
    return entries
