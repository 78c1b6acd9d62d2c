"""`workron controller`: submits Jobs and Workflows of a cluster, and runs its WorkerPools."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

import workron
from workron.cli import health, options, system_clock
from workron.cli.maintainer_metrics import MaintainerMetrics
from workron.cli.signals import SignalledService
from workron.cli.stores import opened
from workron.core import errors, formats, ids
from workron.scheduling.maintainer import Maintainer
from workron.telemetry import logging

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workron.cli.health import Address
    from workron_controller.manager import ControllerConfig, Manager
    from workron_controller.metrics import ControllerMetrics
    from workron_controller.workerpools.config import PoolConfig


LEASE_NAME: Final = "workron-controller"
_POD_NAME: Final = "WORKRON_POD_NAME"
_POD_NAMESPACE: Final = "WORKRON_POD_NAMESPACE"


@dataclass(frozen=True, slots=True)
class _Settings:
    store: str
    config: ControllerConfig
    pools: PoolConfig
    health: Address | None


def controller(  # noqa: PLR0913, PLR0917 - one for each option
    store: options.Store = None,
    watch_namespace: Annotated[
        list[str] | None,
        typer.Option(
            envvar="WORKRON_WATCH_NAMESPACE",
            metavar="NAMESPACE",
            help="Namespace to watch; repeat for several. Default: the whole cluster.",
        ),
    ] = None,
    status_writes_per_second: Annotated[
        float,
        typer.Option(
            envvar="WORKRON_STATUS_WRITES_PER_SECOND",
            min=1,
            help="Maximum number of statuses that are written per second.",
        ),
    ] = 200.0,
    worker_image: Annotated[
        str,
        typer.Option(
            envvar="WORKRON_WORKER_IMAGE",
            metavar="IMAGE",
            help="Image of agents, and of commands in pools without an image.",
        ),
    ] = f"workron-worker:{workron.__version__}",
    default_worker_pool: Annotated[
        pathlib.Path | None,
        typer.Option(
            envvar="WORKRON_DEFAULT_WORKER_POOL",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Spec of the WorkerPool `default`, created in namespaces whose jobs need it.",
        ),
    ] = None,
    worker_pools: Annotated[
        pathlib.Path | None,
        typer.Option(
            envvar="WORKRON_WORKER_POOLS",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="WorkerPools to create: a list of {namespace, name, spec}.",
        ),
    ] = None,
    max_worker_connections: Annotated[
        int | None,
        typer.Option(
            envvar="WORKRON_MAX_WORKER_CONNECTIONS",
            min=0,
            help="Database connections that all workers together may use; default: 3 of 4.",
        ),
    ] = None,
    uses_shared_role: Annotated[
        bool,
        typer.Option(
            "--shared-role",
            envvar="WORKRON_SHARED_ROLE",
            help="Have workers log in with the controller's database role instead of one per pool.",
        ),
    ] = False,
    where: options.Health = None,
    log_format: options.Log = None,
) -> None:
    """Run Jobs and Workflows of a cluster, and the WorkerPools for them.

    The cluster is that of KUBECONFIG, of the pod in which this runs, or of ~/.kube/config. Run
    several replicas for availability: all submit objects to the store, one leader writes statuses
    and scales pools, and one maintains the store. Another replica takes over at once when one is
    stopped by a signal, and within 15 s when one crashes.
    """
    logging.serve(log_format)
    logging.redirect_library("kopf")
    service = SignalledService("controller stopping")
    _require_libraries()
    from workron_controller.manager import ControllerConfig
    from workron_controller.workerpools.config import PoolConfig

    config = ControllerConfig(
        _namespaces(watch_namespace or ()), status_writes_per_second, max_worker_connections
    )
    pools = PoolConfig(
        worker_image, _namespace(), default_worker_pool, worker_pools, uses_shared_role
    )
    url = options.require_persistent_store(store)
    service.run(_run(_Settings(url, config, pools, health.given(where))))


def _namespaces(given: Sequence[str]) -> list[str]:
    return [options.name("--watch-namespace", one, formats.LABEL) for one in given]


def _require_libraries() -> None:
    try:
        import kopf  # noqa: F401
        import kubernetes.aio  # noqa: F401
    except ImportError as missing:
        raise errors.InputError(
            f"the controller needs the library {missing.name}, which is not installed\n"
            "install it with `pip install workron[controller]`"
        ) from None


async def _run(settings: _Settings) -> None:
    from workron_controller.kube import auth
    from workron_controller.kube.client import ApiClient
    from workron_controller.kube.leader_election import LeaderElection, LeaseLock
    from workron_controller.manager import ControllerDependencies, Manager

    clock, rng = system_clock.CLOCK, system_clock.RNG
    access = auth.find_api_server(clock)
    maintainer = MaintainerMetrics(clock)
    async with (
        opened(settings.store) as store,
        ApiClient(access) as api,
        # Renewals of the Lease must not wait behind other requests.
        ApiClient(access) as lease_api,
    ):
        lock = LeaseLock(lease_api, _namespace(), LEASE_NAME, _identity())
        deps = ControllerDependencies(
            pools=settings.pools,
            store=store,
            api=api,
            access=access,
            election=LeaderElection(lock, clock, rng),
            maintainer=Maintainer(store, clock, ids.mint_uuid(rng), maintainer),
            clock=clock,
            rng=rng,
        )
        manager = Manager(deps, settings.config)
        with _health_server(settings.health, maintainer, manager):
            await manager.run()


@contextlib.contextmanager
def _health_server(
    where: Address | None, maintainer: MaintainerMetrics, manager: Manager
) -> Iterator[None]:
    """Serve probes and metrics meanwhile if `--health` is given."""
    from workron_controller.metrics import ControllerMetrics

    metrics = ControllerMetrics(manager, maintainer.registry, system_clock.CLOCK)
    if where is None:
        yield
        return
    with health.served(where, _Health(maintainer, metrics), system_clock.CLOCK):
        yield


class _Health:
    """The health of the maintainer and of the controller."""

    def __init__(self, maintainer: MaintainerMetrics, metrics: ControllerMetrics) -> None:
        self.registry = maintainer.registry
        self._maintainer = maintainer
        self._metrics = metrics

    @property
    def why_hopeless(self) -> str | None:
        return self._maintainer.why_hopeless

    def why_not_ready(self) -> str | None:
        return self._maintainer.why_not_ready() or self._metrics.why_not_ready()


def _namespace() -> str:
    return os.environ.get(_POD_NAMESPACE) or "default"


def _identity() -> str:
    return os.environ.get(_POD_NAME) or f"{socket.gethostname()}-{os.getpid()}"
