"""`workron controller`: the operator, which carries objects of a cluster into a store."""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from workron.cli import health, log, options, system
from workron.cli.maintainer_metrics import MaintainerMetrics
from workron.cli.opening import opened
from workron.cli.service import Service
from workron.core import errors, form, ids
from workron.scheduling.maintain import Maintainer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workron.cli.health import Address
    from workron_controller.metrics import Metrics
    from workron_controller.operator import Operator, Scope

LEASE: Final = "workron-controller"
_POD_NAME: Final = "WORKRON_POD_NAME"
_POD_NAMESPACE: Final = "WORKRON_POD_NAMESPACE"


@dataclass(frozen=True, slots=True)
class _Settings:
    store: str
    scope: Scope
    health: Address | None


def controller(
    store: options.Store = None,
    watch_namespace: Annotated[
        list[str] | None,
        typer.Option(
            envvar="WORKRON_WATCH_NAMESPACE",
            metavar="NAMESPACE",
            help="Whose objects are looked after; may be repeated. Default: those of all.",
        ),
    ] = None,
    status_rate: Annotated[
        float,
        typer.Option(
            envvar="WORKRON_STATUS_RATE", min=1, help="Statuses written a second, at most."
        ),
    ] = 200.0,
    where: options.Health = None,
    log_format: options.Log = None,
) -> None:
    """Carry Jobs and Workflows of a cluster into a store, and tell in them how they stand.

    The cluster is that of KUBECONFIG, of the pod that this runs in, or of ~/.kube/config. Any
    number of them may run: all take in, one of them writes statuses, and one maintains the store.
    When these end others follow, at once if they were ended by a signal, else within 15 s.
    """
    log.serve(log_format)
    log.take_in("kopf")
    service = Service("controller ends")
    _need_libraries()
    from workron_controller.operator import Scope

    scope = Scope(_namespaces(watch_namespace or ()), status_rate)
    settings = _Settings(options.lasting(store), scope, health.given(where))
    service.carry_out(_control(settings))


def _namespaces(given: Sequence[str]) -> list[str]:
    return [options.name("--watch-namespace", one, form.LABEL) for one in given]


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
    from workron_controller.api import access
    from workron_controller.api.server import Server
    from workron_controller.leader.election import Election
    from workron_controller.leader.seat import Seat
    from workron_controller.operator import Around, Operator

    way_in = access.find(system.CLOCK)
    maintainer = MaintainerMetrics(system.CLOCK)
    async with (
        opened(settings.store) as store,
        Server(way_in) as server,
        # Who writes much must not keep who renews a lease waiting.
        Server(way_in) as apart,
    ):
        seat = Seat(apart, _namespace(), LEASE, _identity())
        around = Around(
            store=store,
            server=server,
            access=way_in,
            election=Election(seat, system.CLOCK, system.RNG),
            maintainer=Maintainer(store, system.CLOCK, ids.mint_uuid(system.RNG), maintainer),
            clock=system.CLOCK,
            rng=system.RNG,
        )
        operator = Operator(around, settings.scope)
        with _told(settings.health, maintainer, operator):
            await operator.run()


@contextlib.contextmanager
def _told(
    where: Address | None, maintainer: MaintainerMetrics, operator: Operator
) -> Iterator[None]:
    """Answer probes meanwhile, if they are asked for."""
    from workron_controller.metrics import Metrics

    metrics = Metrics(operator, maintainer.registry, system.CLOCK)
    if where is None:
        yield
        return
    with health.told(where, _Health(maintainer, metrics), system.CLOCK):
        yield


class _Health:
    """Both halves of it: the database's and the cluster's."""

    def __init__(self, maintainer: MaintainerMetrics, metrics: Metrics) -> None:
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
