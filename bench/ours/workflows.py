"""Workflows as people write them, read and validated, and submitted as the program does it."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.ours import plans
from workron.cli import gc_tuning
from workron.core.manifest import load
from workron.core.manifest.load import Manifest
from workron.core.model.meta import API_VERSION
from workron.core.model.workflow import MAX_TASKS
from workron.scheduling import submit
from workron.store import api, connect

_LAYERS: Final = 100


@dataclass(frozen=True, slots=True)
class Shape:
    """What the jobs are written as: elements of an array, or tasks that wait for others."""

    title: str
    is_array: bool = False
    edges: int = 0
    """How many of the layer before each task waits for; the first layer for none."""

    def read_in(self, jobs: int) -> list[Manifest]:
        """Have so many jobs, in as few workflows as may hold them."""
        written = [self._workflow(f"bench-{at}", tasks) for at, tasks in enumerate(self._all(jobs))]
        sources = [load.ManifestSource("bench", json.dumps(one).encode()) for one in written]
        with gc_tuning.paused_collection():
            return load.load(sources)

    def _all(self, jobs: int) -> Iterable[Sequence[Mapping[str, Any]]]:
        if self.is_array:
            return [[{"name": "work", "argv": ["true"], "count": jobs}]]
        sizes = (min(MAX_TASKS, jobs - first) for first in range(0, jobs, MAX_TASKS))
        return ([self._task(at, size) for at in range(size)] for size in sizes)

    def _task(self, at: int, size: int) -> Mapping[str, Any]:
        before = at - max(size // _LAYERS, self.edges)
        upstreams = [{"name": f"t{before + one}"} for one in range(self.edges)]
        return {"name": f"t{at}", "argv": ["true"], "dependsOn": upstreams if before >= 0 else []}

    @staticmethod
    def _workflow(name: str, tasks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        head = {"apiVersion": API_VERSION, "kind": "Workflow", "metadata": {"name": name}}
        return {**head, "spec": {"tasks": tasks}}


ARRAY: Final = Shape("one array", is_array=True)
FLAT: Final = Shape("tasks without edges")
EDGES: Final = {
    1: Shape("tasks with an edge each", edges=1),
    2: Shape("tasks with two edges each", edges=2),
}


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncIterator[api.Store]:
    """Open the store, and have it ready for the first submission."""
    store = await connect.connect(url, clock=plans.Clock(), rng=plans.RNG)
    try:
        await store.ensure_pool("default", "default")
        yield store
    finally:
        await store.close()


async def submitted(store: api.Store, manifests: Sequence[Manifest]) -> None:
    """Do all that stands between validated models and the commit, as a command does it."""
    try:
        with gc_tuning.paused_collection():
            request = submit.plan(manifests, plans.RNG)
        await submit.submit(store, request)
    finally:
        # A command would end here.
        gc.unfreeze()
