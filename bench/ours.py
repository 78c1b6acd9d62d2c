"""What Workron does: whole runs by its command line, and jobs through the doors of a store."""

import asyncio
import itertools
import pathlib
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable

from bench import plans
from workron.core import ids
from workron.store import connect, protocol

_WORKRON = pathlib.Path(sys.executable).with_name("workron")
_FLOW = """
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {{name: bench}}
spec:
  tasks: [{{name: work, count: {jobs}, argv: ["true"]}}]
"""


def running(store: str, *, jobs: int, slots: int) -> Callable[[], float]:
    """Run a file of commands to its end, from the start of the program to its exit."""
    numbers = itertools.count()

    def measure() -> float:
        with tempfile.TemporaryDirectory() as folder:
            flow = pathlib.Path(folder) / "flow.yaml"
            flow.write_text(_FLOW.format(jobs=jobs))
            # Of each store its own, so that no run finds what an earlier one left.
            url = store.format(f"{slots}-{next(numbers)}")
            command = [str(_WORKRON), "run", str(flow), "--store", url, "--slots", str(slots)]
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return jobs / (time.perf_counter() - began)

    return measure


def draining(url: str, *, jobs: int, batch: int) -> Callable[[], float]:
    """Claim and complete jobs without running anything, so many a call."""
    numbers = itertools.count()
    return lambda: asyncio.run(_drain(url.format(next(numbers)), jobs, batch))


async def _drain(url: str, jobs: int, batch: int) -> float:
    store = await connect.connect(url, clock=plans.Clock(), rng=plans.RNG)
    try:
        await store.submit([plans.many(jobs, {"command": "true"})])
        token = await store.ensure_pool("default", "default")
        session = await store.register(
            protocol.Registration(token, "bench", uuid.uuid4(), slots=batch)
        )
        began = time.perf_counter()
        claimed = await store.claim(session.key, _claims(batch))
        while claimed:
            ends = [_end(one) for one in claimed]
            claimed = (await store.complete(session.key, ends, _claims(batch))).claimed
        return jobs / (time.perf_counter() - began)
    finally:
        await store.close()


def _end(claimed: protocol.Claimed) -> protocol.End:
    return protocol.End(claimed.job, *claimed.right, protocol.Outcome.SUCCEEDED)


def _claims(count: int) -> list[ids.ClaimId]:
    return [ids.ClaimId(ids.mint_uuid(plans.RNG)) for _ in range(count)]
