"""What Workron does: whole runs by its command line, and jobs through the doors of a store."""

import asyncio
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from workron.core import ids
from workron.core.plan import Identity, Kind, Node, Plan, Spec
from workron.core.verdict import Condition
from workron.store import connect, protocol

_WORKRON = pathlib.Path(sys.executable).with_name("workron")
_RNG = random.Random(1)  # noqa: S311 - a bench draws no secrets
_FLOW = """
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {{name: bench}}
spec:
  tasks: [{{name: work, count: {jobs}, argv: ["true"]}}]
"""


class _Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


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
    store = await connect.connect(url, clock=_Clock(), rng=_RNG)
    try:
        await store.submit([_plan(jobs)])
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


def _plan(jobs: int) -> Plan:
    whole = Node(Kind.WORKFLOW, "bench", 0, upstreams=jobs)
    members = [
        Node(Kind.JOB, f"t{job}", 1, member_of=0, bearing=Condition.TASK) for job in range(jobs)
    ]
    identity = Identity("default", Kind.WORKFLOW, "bench", uuid.uuid4())
    return Plan(identity, "digest", [whole, *members], [Spec({}), Spec({"command": "true"})])


def _claims(count: int) -> list[ids.ClaimId]:
    return [ids.ClaimId(ids.mint_uuid(_RNG)) for _ in range(count)]
