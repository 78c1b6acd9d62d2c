"""A store in memory with a clock that tests advance."""

import random
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from workron.core import planner
from workron.core.ids import JobId
from workron.core.model.job import Job
from workron.core.model.workflow import Workflow
from workron.core.plan import Plan
from workron.store import connect
from workron.store.api import Store
from workron.store.types import Registration, Session


class ManualClock:
    """Stands still until a test advances it."""

    def __init__(self) -> None:
        self.elapsed = timedelta(0)

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + self.elapsed

    def monotonic(self) -> float:
        return self.elapsed.total_seconds()

    def advance(self, seconds: float) -> None:
        self.elapsed += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(clock: ManualClock) -> AsyncIterator[Store]:
    store = await connect.connect("memory:", clock=clock, rng=random.Random())
    yield store
    await store.close()


def job(name: str, **spec: Any) -> Plan:
    """Plan a Job."""
    body = _manifest("Job", name, {"command": "true"} | spec)
    return planner.plan_job(Job.parse(body), uuid.uuid4())


def workflow(name: str, *tasks: dict[str, Any]) -> Plan:
    """Plan a Workflow."""
    full = [{"command": "true"} | task for task in tasks]
    return planner.plan_workflow(
        Workflow.parse(_manifest("Workflow", name, {"tasks": full})), uuid.uuid4()
    )


async def submit(store: Store, plan: Plan) -> JobId:
    """Submit one plan."""
    [submitted] = await store.submit([plan])
    return submitted.run


async def register_worker(store: Store, name: str = "worker") -> Session:
    """Register a worker of the pool `default`."""
    token = await store.ensure_pool("default", "default")
    return await store.register(Registration(token, name, uuid.uuid4(), 10))


def _manifest(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "workron.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "labels": {"team": "data"}},
        "spec": spec,
    }
