"""`workron controller`: the operator, which carries objects of a cluster into a store."""

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
    from workron_controller.manager import Manager, ManagerScope
    from workron_controller.metrics import ControllerMetrics
    from workron_controller.workerpools.config import PoolSettings as Pools


LEASE: Final = "workron-controller"
_POD_NAME: Final = "WORKRON_POD_NAME"
_POD_NAMESPACE: Final = "WORKRON_POD_NAMESPACE"


@dataclass(frozen=True, slots=True)
class _Settings:
    store: str
    scope: ManagerScope
    pools: Pools
    health: Address | None


def controller(  # noqa: PLR0913, PLR0917 - one for each option
    store: options.Store = None,
    watch_namespace: Annotated[
        list[str] | None,
        typer.Option(
            envvar="WORKRON_WATCH_NAMESPACE",
            metavar="NAMESPACE",
            help="Whose objects are looked after; may be repeated. Default: those of all.",
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
            help="Of workers' agents, and of the commands of pools that name none.",
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
    is_role_shared: Annotated[
        bool,
        typer.Option(
            "--shared-role",
            envvar="WORKRON_SHARED_ROLE",
            help="Workers log in as the controller does, and not as a role of their pool.",
        ),
    ] = False,
    where: options.Health = None,
    log_format: options.Log = None,
) -> None:
    """Carry Jobs and Workflows of a cluster into a store, and run WorkerPools for them.

    The cluster is that of KUBECONFIG, of the pod that this runs in, or of ~/.kube/config. Any
    number of them may run: all take in, one of them writes statuses and scales pools, and one
    maintains the store. When these end others follow, at once if they were ended by a signal,
    else within 15 s.
    """
    logging.serve(log_format)
    logging.redirect_library("kopf")
    service = SignalledService("controller stopping")
    _need_libraries()
    from workron_controller.manager import ManagerScope
    from workron_controller.workerpools.config import PoolSettings as Pools

    scope = ManagerScope(
        _namespaces(watch_namespace or ()), status_writes_per_second, max_worker_connections
    )
    asked = Pools(worker_image, _namespace(), default_worker_pool, worker_pools, is_role_shared)
    settings = _Settings(options.require_persistent_store(store), scope, asked, health.given(where))
    service.run(_control(settings))


def _namespaces(given: Sequence[str]) -> list[str]:
    return [options.name("--watch-namespace", one, formats.LABEL) for one in given]


def _need_libraries() -> None:
    try:
        import kopf  # noqa: F401
        import kubernetes.aio  # noqa: F401
    except ImportError as missing:
        raise errors.InputError(
            f"the controller needs a library that is not installed: {missing.name}\n"
            "install `workron[controller]`, which brings it"
        ) from None


async def _control(settings: _Settings) -> None:
    from workron_controller.kube import auth
    from workron_controller.kube.client import ApiClient
    from workron_controller.kube.leader_election import LeaderElection, LeaseLock
    from workron_controller.manager import Manager, ManagerDependencies

    way_in = auth.find_api_server(system_clock.CLOCK)
    maintainer = MaintainerMetrics(system_clock.CLOCK)
    async with (
        opened(settings.store) as store,
        ApiClient(way_in) as server,
        # Who writes much must not keep who renews a lease waiting.
        ApiClient(way_in) as apart,
    ):
        seat = LeaseLock(apart, _namespace(), LEASE, _identity())
        around = ManagerDependencies(
            pools=settings.pools,
            store=store,
            server=server,
            access=way_in,
            election=LeaderElection(seat, system_clock.CLOCK, system_clock.RNG),
            maintainer=Maintainer(
                store, system_clock.CLOCK, ids.mint_uuid(system_clock.RNG), maintainer
            ),
            clock=system_clock.CLOCK,
            rng=system_clock.RNG,
        )
        operator = Manager(around, settings.scope)
        with _told(settings.health, maintainer, operator):
            await operator.run()


@contextlib.contextmanager
def _told(
    where: Address | None, maintainer: MaintainerMetrics, operator: Manager
) -> Iterator[None]:
    """Answer probes meanwhile, if they are asked for."""
    from workron_controller.metrics import ControllerMetrics

    metrics = ControllerMetrics(operator, maintainer.registry, system_clock.CLOCK)
    if where is None:
        yield
        return
    with health.served(where, _Health(maintainer, metrics), system_clock.CLOCK):
        yield


class _Health:
    """Both halves of it: the database's and the cluster's."""

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
