"""How the cluster calls what we have in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workron.core.plan import Kind
from workron_controller.api.place import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP: Final = "workron.dev"
VERSION: Final = "v1alpha1"


JOBS: Final = Resource(GROUP, VERSION, "workronjobs")
WORKFLOWS: Final = Resource(GROUP, VERSION, "workronflows")
POOLS: Final = Resource(GROUP, VERSION, "workerpools")
BY_KIND: Final[Mapping[Kind, Resource]] = {Kind.JOB: JOBS, Kind.WORKFLOW: WORKFLOWS}
PODS: Final = Resource("", "v1", "pods")
SECRETS: Final = Resource("", "v1", "secrets")
EVENTS: Final = Resource("", "v1", "events")
NODES: Final = Resource("", "v1", "nodes")
REPLICA_SETS: Final = Resource("apps", "v1", "replicasets")
