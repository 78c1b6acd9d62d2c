"""`workron controller`: submits Jobs and Workflows of a cluster, and runs its WorkerPools."""

from __future__ import annotations

import os
import pathlib
import socket
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

import workron
from workron.cli import health, options, system_clock
from workron.cli.options import Address
from workron.cli.signals import SignalledService
from workron.cli.stores import opened
from workron.core import errors, formats, ids
from workron.scheduling.maintainer import Maintainer, MaintainerMetrics
from workron.telemetry import logging

if TYPE_CHECKING:
    from workron.cli.health import HealthSubject
    from workron_controller.manager import ControllerConfig
    from workron_controller.workerpools.config import PoolConfig


LEASE_NAME: Final = "workron-controller"
_POD_NAME: Final = "WORKRON_POD_NAME"
_POD_NAMESPACE: Final = "WORKRON_POD_NAMESPACE"


def _file(variable: str, text: str) -> Any:
    return typer.Option(envvar=variable, metavar="FILE", exists=True, dir_okay=False, help=text)


WatchNamespaces = Annotated[
    list[str] | None,
    options.name(
        "--watch-namespace",
        form=formats.LABEL,
        envvar="WORKRON_WATCH_NAMESPACE",
        metavar="NAMESPACE",
        text="Namespace to watch; repeat for several. Default: the whole cluster.",
    ),
]
StatusWrites = Annotated[
    float,
    typer.Option(
        "--status-writes-per-second",
        envvar="WORKRON_STATUS_WRITES_PER_SECOND",
        min=1,
        help="Maximum number of statuses that are written per second.",
    ),
]
Image = Annotated[
    str,
    typer.Option(
        "--worker-image",
        envvar="WORKRON_WORKER_IMAGE",
        metavar="IMAGE",
        help="Image of agents, and of commands in pools without an image.",
    ),
]
DefaultPool = Annotated[
    pathlib.Path | None,
    _file(
        "WORKRON_DEFAULT_WORKER_POOL",
        "Spec of the WorkerPool `default`, created in namespaces whose jobs need it.",
    ),
]
Pools = Annotated[
    pathlib.Path | None,
    _file("WORKRON_WORKER_POOLS", "WorkerPools to create: a list of {namespace, name, spec}."),
]
MaxConnections = Annotated[
    int | None,
    typer.Option(
        "--max-worker-connections",
        envvar="WORKRON_MAX_WORKER_CONNECTIONS",
        min=0,
        help="Database connections that all workers together may use; default: 3 of 4.",
    ),
]
SharedRole = Annotated[
    bool,
    typer.Option(
        "--shared-role",
        envvar="WORKRON_SHARED_ROLE",
        help="Have workers log in with the controller's database role instead of one per pool.",
    ),
]


def controller(  # noqa: PLR0913, PLR0917 - one for each option
    store: options.Store,
    watch_namespace: WatchNamespaces = None,
    status_writes: StatusWrites = 200.0,
    worker_image: Image = f"workron-worker:{workron.__version__}",
    default_worker_pool: DefaultPool = None,
    worker_pools: Pools = None,
    max_worker_connections: MaxConnections = None,
    uses_shared_role: SharedRole = False,
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
    try:
        import kopf  # noqa: F401
        import kubernetes.aio  # noqa: F401
    except ImportError as missing:
        raise errors.InputError(
            f"the controller needs the library {missing.name}, which is not installed\n"
            "install it with `pip install workron[controller]`"
        ) from None
    from workron_controller.manager import ControllerConfig
    from workron_controller.workerpools.config import PoolConfig

    config = ControllerConfig(watch_namespace or (), status_writes, max_worker_connections)
    pools = PoolConfig(
        worker_image, _namespace(), default_worker_pool, worker_pools, uses_shared_role
    )
    service.run(_run(store, config, pools, where))


async def _run(
    url: str, config: ControllerConfig, pools: PoolConfig, where: Address | None
) -> None:
    from workron.cli.maintainer_exporter import MaintainerExporter
    from workron_controller.kube import auth
    from workron_controller.kube.client import ApiClient
    from workron_controller.kube.leader_election import LeaderElection, LeaseLock
    from workron_controller.manager import ControllerDependencies, Manager
    from workron_controller.metrics import ControllerMetrics

    clock, rng = system_clock.CLOCK, system_clock.RNG
    access = auth.find_api_server(clock)
    maintainer = MaintainerMetrics(clock)
    async with (
        opened(url) as store,
        ApiClient(access) as api,
        # Renewals of the Lease must not wait behind other requests.
        ApiClient(access) as lease_api,
    ):
        lock = LeaseLock(lease_api, _namespace(), LEASE_NAME, _identity())
        deps = ControllerDependencies(
            pools=pools,
            store=store,
            api=api,
            access=access,
            election=LeaderElection(lock, clock, rng),
            maintainer=Maintainer(store, clock, ids.mint_uuid(rng), maintainer),
            clock=clock,
            rng=rng,
        )
        manager = Manager(deps, config)

        def exporter() -> HealthSubject:
            subject = MaintainerExporter(maintainer)
            metrics = ControllerMetrics(manager, subject.registry, clock)
            subject.why_not_ready = lambda: maintainer.why_not_ready() or metrics.why_not_ready()
            return subject

        with health.served(where, exporter, clock):
            await manager.run()


def _namespace() -> str:
    return os.environ.get(_POD_NAMESPACE) or "default"


def _identity() -> str:
    return os.environ.get(_POD_NAME) or f"{socket.gethostname()}-{os.getpid()}"
