"""`workron maintain`: the maintainer by itself, for workers that run elsewhere."""

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
    """Take back what dead workers held, wake what is due, and pass ends on, until a signal comes.

    Any number of them may run: the store elects one that works, and when that ends another one
    follows, at once if it was ended by a signal, else after 10 s.
    """
    logging.serve(log_format)
    service = SignalledService("maintainer ends")
    service.carry_out(_maintain(options.lasting(store), health.given(where)))


async def _maintain(url: str, where: Address | None) -> None:
    async with health.of_maintainer(where, system_clock.CLOCK) as meter, opened(url) as store:
        maintainer = Maintainer(store, system_clock.CLOCK, ids.mint_uuid(system_clock.RNG), meter)
        await maintainer.run(store.wait_for_work)
