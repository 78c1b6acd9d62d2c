"""`workron maintain`: the maintainer by itself, for workers that run elsewhere."""

from __future__ import annotations

from workron.cli import health, log, options, system
from workron.cli.health import Address
from workron.cli.opening import opened
from workron.cli.service import Service
from workron.core import ids
from workron.scheduling.maintain import Maintainer


def maintain(
    store: options.Store = None, where: options.Health = None, log_format: options.Log = None
) -> None:
    """Take back what dead workers held, wake what is due, and pass ends on, until a signal comes.

    Any number of them may run: the store elects one that works, and when that ends another one
    follows, at once if it was ended by a signal, else after 10 s.
    """
    log.serve(log_format)
    service = Service("maintainer ends")
    service.carry_out(_maintain(options.lasting(store), health.given(where)))


async def _maintain(url: str, where: Address | None) -> None:
    async with health.of_maintainer(where, system.CLOCK) as meter, opened(url) as store:
        maintainer = Maintainer(store, system.CLOCK, ids.mint_uuid(system.RNG), meter)
        await maintainer.run(store.wait_for_work)
