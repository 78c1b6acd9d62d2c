"""Settings of all WorkerPools, and what the parts of the pool controller share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Collection

    from workron.core.clock import Clock
    from workron.store.api import Store
    from workron_controller.kube.client import ApiClient, RetryingCalls
    from workron_controller.kube.events import KubernetesEvent
    from workron_controller.workerpools.autoscaler import ConnectionBudget


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """Settings of the installation."""

    image: str
    """The image of agents, and of commands where a pool has no image."""
    namespace: str = "default"
    """The namespace of the controller and its service account."""
    default_pool_file: pathlib.Path | None = None
    """The spec of the pool `default`, which is created where jobs need it; None: never."""
    pools_file: pathlib.Path | None = None
    """More pools, from the values of the chart."""
    uses_shared_role: bool = False
    """Whether workers log in to the database as the controller does, without their own roles."""


@dataclass(frozen=True, slots=True)
class PoolDependencies:
    """The collaborators that all pools share."""

    api: ApiClient
    retrying: RetryingCalls
    """Gives up after seconds, as the next round comes soon."""
    store: Store
    budget: ConnectionBudget
    config: PoolConfig
    namespaces: Collection[str]
    """The namespaces whose pools are managed; none: all."""
    clock: Clock
    record_event: Callable[[KubernetesEvent], None]
    """Never blocks."""

    def covers(self, namespace: str) -> bool:
        """Return whether the pools of a namespace are managed."""
        return not self.namespaces or namespace in self.namespaces
