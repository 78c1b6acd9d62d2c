"""`workron maintain`: runs a maintainer, for stores whose workers run elsewhere."""

from __future__ import annotations

from workron.cli import health, options, system_clock
from workron.cli.health import Address
from workron.cli.signals import SignalledService
from workron.cli.stores import opened
from workron.core import ids
from workron.scheduling.maintainer import Maintainer
from workron.telemetry import logging


def maintain(
    store: options.Store = None, where: options.Health = None, log_format: options.Log = None
) -> None:
    """Maintain a store: handles retries, deadlines and dead workers, until a signal arrives.

    Any number of maintainers may run; the store elects one. Another one takes over at once when
    a signal stops the elected one, or within 10 s when that dies.
    """
    logging.serve(log_format)
    service = SignalledService("maintainer stopping")
    service.run(_maintain(options.require_persistent_store(store), health.given(where)))


async def _maintain(url: str, where: Address | None) -> None:
    async with health.of_maintainer(where, system_clock.CLOCK) as meter, opened(url) as store:
        maintainer = Maintainer(store, system_clock.CLOCK, ids.mint_uuid(system_clock.RNG), meter)
        await maintainer.run(store.wait_for_work)
