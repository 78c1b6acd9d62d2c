"""Resources of the Kubernetes API, and the paths of their objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from workron.core.plan import Kind


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A resource, which is named by its plural: two groups can have the same kind."""

    group: str
    """Empty for the core group, which has pods and secrets."""
    version: str
    plural: str

    def at(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> ResourcePath:
        """Return the path of an object, of a namespace's collection, or of the cluster's."""
        return ResourcePath(self, namespace, name, subresource)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """One object or one collection."""

    resource: ApiResource
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None

    @property
    def path(self) -> str:
        """The path of the URL."""
        resource = self.resource
        prefix = f"/apis/{resource.group}" if resource.group else "/api"
        namespace = ("namespaces", self.namespace) if self.namespace else ()
        segments = (*namespace, resource.plural, self.name, self.subresource)
        # Names come from outside: quoting keeps a name from leading to another path.
        quoted = (quote(segment, safe="") for segment in segments if segment)
        return "/".join([prefix, resource.version, *quoted])

    @property
    def rbac_resource(self) -> str:
        """The resource as RBAC and metrics name it, such as `workronjobs/status`."""
        plural = self.resource.plural
        return f"{plural}/{self.subresource}" if self.subresource else plural

    def __str__(self) -> str:
        subresource = f"/{self.subresource}" if self.subresource else ""
        name = "/".join(segment for segment in (self.namespace, self.name) if segment)
        return f"{self.resource}{subresource} {name}".rstrip()


GROUP: Final = "workron.dev"
VERSION: Final = "v1alpha1"

JOBS: Final = ApiResource(GROUP, VERSION, "workronjobs")
WORKFLOWS: Final = ApiResource(GROUP, VERSION, "workronflows")
WORKERPOOLS: Final = ApiResource(GROUP, VERSION, "workerpools")
BY_KIND: Final[Mapping[Kind, ApiResource]] = {Kind.JOB: JOBS, Kind.WORKFLOW: WORKFLOWS}
PODS: Final = ApiResource("", "v1", "pods")
SECRETS: Final = ApiResource("", "v1", "secrets")
EVENTS: Final = ApiResource("", "v1", "events")
NAMESPACES: Final = ApiResource("", "v1", "namespaces")
NODES: Final = ApiResource("", "v1", "nodes")
REPLICA_SETS: Final = ApiResource("apps", "v1", "replicasets")


def generation_of(raw: Mapping[str, Any]) -> int:
    """Return the generation of an object as the API server gave it; 1 where it has none."""
    generation = raw["metadata"].get("generation")
    return generation if isinstance(generation, int) else 1
