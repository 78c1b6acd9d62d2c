"""Workflows as users write them, loaded, validated and submitted as the program does."""

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
    """How the jobs are written: as elements of an array, or as tasks that wait for others."""

    title: str
    is_array: bool = False
    edges: int = 0
    """The number of upstreams of each task in the previous layer; the first layer has none."""

    def read_in(self, jobs: int) -> list[Manifest]:
        """Load this many jobs, in as few workflows as possible."""
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
    """Open the store and prepare it for the first submission."""
    store = await connect.connect(url, clock=plans.Clock(), rng=plans.RNG)
    try:
        await store.ensure_pool("default", "default")
        yield store
    finally:
        await store.close()


async def submitted(store: api.Store, manifests: Sequence[Manifest]) -> None:
    """Do all steps from validated models to the commit, as a command does."""
    try:
        with gc_tuning.paused_collection():
            request = submit.plan(manifests, plans.RNG)
        await submit.submit(store, request)
    finally:
        # A command would exit here.
        gc.unfreeze()
