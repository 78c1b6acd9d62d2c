"""Measures the cost of holding all objects of a cluster: WAY COUNT SETTLING URL.

WAY is `bare`, Kopf with empty handlers; `intake`, a controller that submits all objects and does
not lead; or `leading`, one that also writes their statuses. KUBECONFIG names the cluster. The
process is measured SETTLING seconds after the last object arrived, because Kopf may handle an
object later than its list, and keeps a task for each for five seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import random
import re
import resource
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import kopf
import structlog

from workron.cli import system_clock
from workron.core import ids
from workron.scheduling.maintainer import Maintainer
from workron.store import connect
from workron_controller.kube import auth, resources
from workron_controller.kube.client import ApiClient
from workron_controller.kube.leader_election import LeaderElection, LeaseLock
from workron_controller.manager import ControllerConfig, ControllerDependencies, Manager
from workron_controller.workerpools.config import PoolConfig

_POLL_SECONDS: Final = 0.05
_QUICK: Final = 100_000.0
_CLOCK: Final = system_clock.CLOCK
_RNG: Final = random.Random(1)  # noqa: S311 - not a secret


class _NeverElected(LeaderElection):
    """An election that this process never wins."""

    async def hold(self) -> None:
        await asyncio.Event().wait()


@asynccontextmanager
async def _bare() -> AsyncIterator[Callable[[], int]]:
    received: set[str] = set()
    registry = kopf.OperatorRegistry()
    api_server = auth.find_api_server(_CLOCK)

    @kopf.on.login(registry=registry)
    async def _log_in(**_: Any) -> kopf.ConnectionInfo:
        return (await api_server.endpoint()).kopf_connection

    for kind in resources.BY_KIND.values():

        @kopf.on.event(kind.group, kind.version, kind.plural, registry=registry)
        async def _receive(uid: str, **_: Any) -> None:
            received.add(uid)

    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    work = kopf.operator(registry=registry, settings=settings, standalone=True, clusterwide=True)
    task = asyncio.create_task(work)
    yield lambda: len(received)
    task.cancel()


@asynccontextmanager
async def _operator(url: str, *, is_leading: bool) -> AsyncIterator[Callable[[], int]]:
    store = await connect.connect(url, clock=_CLOCK, rng=_RNG)
    await store.ensure_pool("default", "default")
    api_server = auth.find_api_server(_CLOCK)
    async with ApiClient(api_server) as server:
        lock = LeaseLock(server, "default", "workron", "bench")
        election = (LeaderElection if is_leading else _NeverElected)(lock, _CLOCK, _RNG)
        maintainer = Maintainer(store, _CLOCK, ids.mint_uuid(_RNG))
        pools = PoolConfig("workron:bench")
        dependencies = ControllerDependencies(
            pools, store, server, api_server, election, maintainer, _CLOCK, _RNG
        )
        operator = Manager(dependencies, ControllerConfig(status_writes_per_second=_QUICK))

        def known() -> int:
            if operator.resync.completed_at is None:
                return 0
            if is_leading:
                [written] = operator.status_writer.written.collect()
                return int(written.samples[0].value)
            return sum(seen.run is not None for seen in operator.objects)

        task = asyncio.create_task(operator.run())
        yield known
        task.cancel()
        await asyncio.wait([task])
    await store.close()


async def _main(way: str, count: str, settling: str, url: str) -> None:
    begun = _bare() if way == "bare" else _operator(url, is_leading=way == "leading")
    async with begun as known:
        while known() < int(count):  # noqa: ASYNC110 - neither sets an event for the bench
            await asyncio.sleep(_POLL_SECONDS)
        await asyncio.sleep(float(settling))
        used = resource.getrusage(resource.RUSAGE_SELF)
        usage = {"cpu": used.ru_utime + used.ru_stime, "peak": _kib("VmHWM"), "held": _kib("VmRSS")}
        print(json.dumps(usage), flush=True)
        # Kopf waits for each of its tasks, also for idle ones, and the measurement is complete.
        os._exit(0)


def _kib(name: str) -> int:
    status = pathlib.Path("/proc/self/status").read_text("ascii")
    found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1])


if __name__ == "__main__":
    # Log to standard error: the caller reads only the figures from standard output.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_main(*sys.argv[1:]))
