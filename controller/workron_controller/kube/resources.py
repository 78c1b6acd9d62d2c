"""Where something is on the API server: the path of a request, and its name in a message.

Made by whoever asks for something, of a `Resource` written down once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from workron.core.plan import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object as its API names it; the plural, because kinds of two groups collide."""

    group: str
    """Empty for what was there before there were groups: pods, secrets."""
    version: str
    plural: str

    def at(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> ResourcePath:
        """Name one object, or all of a namespace, or all of the cluster."""
        return ResourcePath(self, namespace, name, subresource)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """One object or one collection."""

    resource: Resource
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None

    @property
    def path(self) -> str:
        """What follows the address of the server."""
        kind = self.resource
        run = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        steps = [
            *(["namespaces", self.namespace] if self.namespace else []),
            kind.plural,
            *([self.name] if self.name else []),
            *([self.subresource] if self.subresource else []),
        ]
        # A name comes from outside: nothing in it may lead to another place.
        return "/".join([run, *(quote(step, safe="") for step in steps)])

    def __str__(self) -> str:
        part = f"/{self.subresource}" if self.subresource else ""
        which = "/".join(step for step in (self.namespace, self.name) if step)
        return f"{self.resource}{part} {which}".rstrip()


GROUP: Final = "workron.dev"
VERSION: Final = "v1alpha1"


JOBS: Final = Resource(GROUP, VERSION, "workronjobs")
WORKFLOWS: Final = Resource(GROUP, VERSION, "workronflows")
WORKERPOOLS: Final = Resource(GROUP, VERSION, "workerpools")
BY_KIND: Final[Mapping[Kind, Resource]] = {Kind.JOB: JOBS, Kind.WORKFLOW: WORKFLOWS}
PODS: Final = Resource("", "v1", "pods")
SECRETS: Final = Resource("", "v1", "secrets")
EVENTS: Final = Resource("", "v1", "events")
NODES: Final = Resource("", "v1", "nodes")
REPLICA_SETS: Final = Resource("apps", "v1", "replicasets")
