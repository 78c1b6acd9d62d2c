"""Renders the page about health and metrics from the registries themselves.

Called by `generate`.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry

from workron.cli.maintainer_exporter import MaintainerExporter
from workron.scheduling.maintainer import MaintainerMetrics
from workron.store.types import PoolDemand
from workron_controller import metrics
from workron_controller.kube.client import ApiClient
from workron_controller.manager import ControllerConfig, ControllerDependencies, Manager
from workron_controller.workerpools.config import PoolConfig
from workron_worker.metrics import WorkerMetrics
from workron_worker.metrics_exporter import WorkerExporter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric


_PAGE: Final = """\
# Health and metrics

<!-- Made by `make generate` from docs/metrics.py and the registries of each command. -->

With `--health HOST:PORT`, a worker, a maintainer or a controller answers GET and HEAD over HTTP,
without encryption or password: choose an address that only trusted clients can reach. A separate
thread answers, also while the event loop of the process is blocked.

| path | 200 means | use it to |
|---|---|---|
| `/healthz` | the process is alive | decide whether to restart it |
| `/readyz` | the process can work now | count available replicas, or pause a rollout |
| `/metrics` | the metrics in the format of Prometheus | observe it over time |

The first two answer `ok`, or 503 and one line of text with the reason.

`/healthz` fails when the event loop has been blocked for 10 seconds, or when the process has failed
for good and still exists; then `/readyz` fails, too. An outage of the store does not fail
`/healthz`: a restart would not help, and workers and maintainers retry.

A worker is ready from its registration until it drains, while its last answered heartbeat is
younger than its lease; with `--runner`, also only while it has a runner. A maintainer is ready when
it completed its last round within 10 seconds, also when it is not elected: its round is then the
election alone. A controller is ready when its maintainer is, and when it has compared all objects
of the cluster with the store recently.

Other paths answer 404, and other methods 405. A client has 10 seconds for a whole connection. When
more than 16 connections are open, the oldest one is closed.

## Of a worker

{worker}

`outcome` is Succeeded, Failed or Retry (it failed and is tried again); `reason` is one of
those in [States](states.md), and empty after a success. Both are the worker's own judgement: a
command that was ended because its job was cancelled counts as Failed by Signal, whatever the store
makes of the job.

## Of a maintainer

{maintainer}

`verb` is the operation of the store that moved the jobs. Alert on `missed_edges`: it stays 0 unless
Workron itself has a bug.

## Of a controller

These, and those of a maintainer.

{controller}

Every controller watches all objects; only the leader writes, and only the leader has metrics of
queues. `outcome` is `Done`, or the error of the API server: `Conflict`, `Forbidden`, `Busy` and so
on. Renewals of the leader's Lease are not counted. A status that the API server refuses counts in
`statuses_deferred` and in no lag.

`change` is `Added`, `Edited` or `Deleted`. A watch that breaks misses a few changes until it is
restarted, and a resync finds them. Changes that are younger than 30 seconds are not counted, nor
are deletions that a watch reports later. The workers count claims, and ends by reason.

`workron_queue_oldest_seconds` counts from the submission of a job, so a job that has waited long
for its upstreams counts as old.

## How to read them

No label ever
holds the name of a job, so the number of series does not grow with what runs.
"""


class _Standstill:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def page() -> str:
    """Render it, a table for each registry."""
    return _PAGE.format(
        worker=_table(WorkerExporter(WorkerMetrics(), 1, _Standstill()).registry),
        maintainer=_table(MaintainerExporter(MaintainerMetrics(_Standstill())).registry),
        controller=_table(asyncio.run(_controller_registry())),
    )


async def _controller_registry() -> CollectorRegistry:
    nothing: Any = None
    election: Any = SimpleNamespace(is_leading=False)
    clock, registry = _Standstill(), CollectorRegistry()
    async with ApiClient(nothing) as api:
        deps = ControllerDependencies(
            PoolConfig(""), nothing, api, nothing, election, nothing, clock, nothing
        )
        manager = Manager(deps, ControllerConfig())
        # A metric shows its labels once it has a value.
        api.write_counter.labels("patch", "workronjobs/status", "Done")
        manager.workerpools.demand = {("namespace", "pool"): PoolDemand(0, clock.now())}
        metrics.ControllerMetrics(manager, registry, clock)
    return registry


def _table(registry: CollectorRegistry) -> str:
    return "\n".join(["| name | type | labels | |", "|---|---|---|---|", *_rows(registry)])


def _rows(registry: CollectorRegistry) -> Iterator[str]:
    for family in sorted(registry.collect(), key=lambda one: one.name):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in _labels(family))
        yield f"| `{name}` | {family.type} | {labels} | {family.documentation} |"


def _labels(family: Metric) -> list[str]:
    # A bucket's bound belongs to the type, not to what is measured.
    return sorted({label for sample in family.samples for label in sample.labels} - {"le"})
