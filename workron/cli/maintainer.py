"""`workron maintain`: runs a maintainer, for stores whose workers run elsewhere."""

from __future__ import annotations

from workron.cli import health, options, system_clock
from workron.cli.health import HealthSubject
from workron.cli.options import Address
from workron.cli.signals import SignalledService
from workron.cli.stores import opened
from workron.core import ids
from workron.scheduling.maintainer import Maintainer, MaintainerMetrics
from workron.telemetry import logging


def maintain(
    store: options.Store, where: options.Health = None, log_format: options.Log = None
) -> None:
    """Maintain a store: handles retries, deadlines and dead workers, until a signal arrives.

    Any number of maintainers may run; the store elects one. Another one takes over at once when
    a signal stops the elected one, or within 10 s when that dies.
    """
    logging.serve(log_format)
    SignalledService("maintainer stopping").run(_maintain(store, where))


async def _maintain(url: str, where: Address | None) -> None:
    clock = system_clock.CLOCK
    metrics = MaintainerMetrics(clock)

    def exporter() -> HealthSubject:
        from workron.cli.maintainer_exporter import MaintainerExporter

        return MaintainerExporter(metrics)

    with health.served(where, exporter, clock):
        async with opened(url) as store:
            holder = ids.mint_uuid(system_clock.RNG)
            await Maintainer(store, clock, holder, metrics).run(store.wait_for_work)
