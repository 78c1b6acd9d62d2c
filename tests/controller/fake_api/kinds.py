"""The kinds that the fake serves, and its answers to discovery requests."""

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
    """A kind of object."""

    resource: ApiResource
    name: str
    singular: str
    is_namespaced: bool = True
    has_status: bool = False
    """Whether it has the subresource `status`, and a generation."""
    fields: tuple[str, ...] = ()
    """The fields that a selector may name, besides name and namespace."""

    @property
    def version(self) -> str:
        """The apiVersion of its objects."""
        group = self.resource.group
        return f"{group}/{self.resource.version}" if group else self.resource.version


def _kind(group: str, plural: str, name: str, **options: Any) -> Kind:
    version = "v1alpha1" if group == _WORKRON else "v1"
    return Kind(ApiResource(group, version, plural), name, plural.removesuffix("s"), **options)


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
    """Return the answer to `/apis`."""
    versions = {
        (kind.resource.group, kind.resource.version) for kind in kinds if kind.resource.group
    }
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(group, version) for group, version in sorted(versions)],
    }


def _group(group: str, version: str) -> Json:
    one = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [one], "preferredVersion": one}


def resources(kinds: Iterable[Kind], group: str, version: str) -> Json | None:
    """Return the answer to `/apis/GROUP/VERSION`; None if it has no kinds."""
    found = [one for one in kinds if (one.resource.group, one.resource.version) == (group, version)]
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}".lstrip("/"),
        "resources": [entry for kind in found for entry in _entries(kind)],
    }


def _entries(kind: Kind) -> list[Json]:
    common = {"namespaced": kind.is_namespaced, "kind": kind.name}
    name = kind.resource.plural
    entries = [{**common, "name": name, "singularName": kind.singular, "verbs": _VERBS}]
    if kind.has_status:
        status = {"name": f"{name}/status", "singularName": "", "verbs": ["get", "patch", "update"]}
        entries.append({**common, **status})
    return entries
