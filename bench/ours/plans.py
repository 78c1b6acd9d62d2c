"""The jobs that the bench submits, and the clock and random generator that it gives a store."""

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from workron.core.plan import Edge, Identity, Kind, Plan, PlannedJob, SchedulingTerms, plain_specs
from workron.core.verdict import Condition

RNG = random.Random(1)  # noqa: S311 - a bench draws no secrets


class Clock:
    """The clocks of this machine."""

    def now(self) -> datetime:
        """Return the time of day."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary moment."""
        return time.monotonic()


def many(jobs: int, spec: Mapping[str, Any]) -> Plan:
    """Plan jobs of one spec without dependencies."""
    return shaped([()] * jobs, spec)


def shaped(upstreams: Sequence[Sequence[int]], spec: Mapping[str, Any]) -> Plan:
    """Plan a job for each entry, which waits for the jobs with those numbers."""
    whole = PlannedJob(Kind.WORKFLOW, "bench", 0, upstreams=len(upstreams))
    elements = [_element(job, len(ups)) for job, ups in enumerate(upstreams)]
    edges = [Edge(up + 1, job) for job, ups in enumerate(upstreams, 1) for up in ups]
    identity = Identity("default", Kind.WORKFLOW, "bench", uuid.uuid4())
    specs = plain_specs([{}, spec])
    return Plan(
        identity,
        lambda: "digest",
        [whole, *elements],
        [SchedulingTerms(), SchedulingTerms()],
        specs,
        edges,
    )


def _element(job: int, upstreams: int) -> PlannedJob:
    return PlannedJob(
        Kind.JOB, f"t{job}", 1, group_id=0, group_condition=Condition.TASK, upstreams=upstreams,
        feeds_inputs=upstreams > 0,
    )  # fmt: skip
