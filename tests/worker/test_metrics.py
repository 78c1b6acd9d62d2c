"""The metrics of a working agent, as Prometheus reads them."""

import asyncio
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families as families

from tests.worker.agent_harness import ENDS_IN_ATTEMPT_2, AgentHarness
from tests.worker.unreliable_store import UnreliableStore
from workron.core import errors
from workron.core.ids import ClaimId, Fence, JobId
from workron.core.states import Reason
from workron.store.types import AttemptReport, Outcome, ReportResult
from workron_worker.config import AgentConfig
from workron_worker.executor import CommandEnd, CommandTask, OnEnd, OnOutput
from workron_worker.metrics import WorkerMetrics
from workron_worker.metrics_exporter import WorkerExporter
from workron_worker.runner_client import RunnerExecutor


@pytest.fixture
def metrics(harness: AgentHarness) -> WorkerMetrics:
    return harness.metrics


def _read(harness: AgentHarness, metrics: WorkerMetrics) -> Mapping[str, float]:
    """Return each series by its short name and the values of its labels."""
    text = generate_latest(
        WorkerExporter(metrics, harness.slots.count, harness.clock).registry
    ).decode()
    return {
        " ".join([sample.name, *sample.labels.values()]).removeprefix(
            "workron_worker_"
        ): sample.value
        for family in families(text)
        for sample in family.samples
    }


def _report(outcome: Outcome, reason: Reason | None = None) -> AttemptReport:
    return AttemptReport(JobId(1), ClaimId(uuid.uuid4()), Fence(1), outcome, reason)


async def test_claims_and_reports_are_counted(
    harness: AgentHarness, metrics: WorkerMetrics
) -> None:
    many = await harness.workflow({"name": "many", "count": 5, "command": "true"})
    failing = await harness.job(command="exit 3", maxAttempts=2, backoff={"initial": "1ms"})
    async with harness.working(await harness.agent()):
        await harness.ended(many)
        await harness.ended(failing)
    read = _read(harness, metrics)
    assert read["claims_total"] == 7
    assert {name: value for name, value in read.items() if name.startswith("attempts_total")} == {
        "attempts_total Succeeded ": 5,
        "attempts_total Retry ExitCode": 1,
        "attempts_total Failed ExitCode": 1,
    }
    assert (read["running"], read["slots"]) == (0, 4)
    assert read["claim_latency_seconds_count"] >= 2
    assert read["claim_latency_seconds_sum"] > 0


async def test_running_command_occupies_a_slot(
    harness: AgentHarness, metrics: WorkerMetrics
) -> None:
    await harness.job(command="echo on; exec sleep 1000")
    agent = await harness.agent()
    async with harness.working(agent):
        await harness.collector.wait()
        assert _read(harness, metrics)["running"] == 1
        agent.kill()
    assert _read(harness, metrics)["running"] == 0
    assert _read(harness, metrics)["released_claims_total"] == 1


async def test_spawn_latency_is_measured_by_the_runner(
    harness: AgentHarness, metrics: WorkerMetrics
) -> None:
    harness.executor.close()
    harness.executor = RunnerExecutor(grace=timedelta(minutes=1), boot=harness.boot)
    run = await harness.workflow({"name": "many", "count": 3, "command": "true"})
    async with harness.working(await harness.agent()):
        await harness.ended(run)
    read = _read(harness, metrics)
    assert read["spawn_latency_seconds_count"] == 3
    assert 0 < read["spawn_latency_seconds_sum"] < 60


async def test_lease_kill_is_counted_once_when_the_store_is_unavailable(
    harness: AgentHarness, metrics: WorkerMetrics
) -> None:
    store = UnreliableStore(harness.store)
    job = await harness.job(command=ENDS_IN_ATTEMPT_2)
    async with harness.working(await harness.agent(store=store)):
        await harness.collector.wait()
        store.is_unavailable = True
        harness.clock.offset_seconds += 6
        assert metrics.why_not_ready(harness.clock.monotonic()) is None
        harness.clock.offset_seconds += 6
        assert "last answered heartbeat" in (metrics.why_not_ready(harness.clock.monotonic()) or "")
        assert _read(harness, metrics)["heartbeat_age_seconds"] >= 12
        while not _read(harness, metrics)["lease_kills_total"]:
            await asyncio.sleep(0)
        store.is_unavailable = False
        await harness.ended(job)
        assert metrics.why_not_ready(harness.clock.monotonic()) is None
        assert _read(harness, metrics)["heartbeat_age_seconds"] < 6
    read = _read(harness, metrics)
    assert (
        read["lease_kills_total"],
        read["released_claims_total"],
        read["lost_sessions_total"],
    ) == (1, 1, 0)


class _DeadlineExecutor:
    """An executor that kills its first command at its deadline."""

    def __init__(self, executor: RunnerExecutor) -> None:
        self._executor = executor
        self._is_first = True

    def start(self, task: CommandTask, on_end: OnEnd, on_output: OnOutput | None = None) -> None:
        if self._is_first:
            self._is_first = False
            end = CommandEnd(is_killed=True, is_past_deadline=True)
            asyncio.get_running_loop().call_soon(on_end, end)
        else:
            self._executor.start(task, on_end, on_output)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


async def test_lease_kill_is_counted_when_the_executor_killed_at_its_deadline(
    harness: AgentHarness, metrics: WorkerMetrics
) -> None:
    executor: Any = _DeadlineExecutor(harness.executor)
    harness.executor = executor
    job = await harness.job(command="true")
    async with harness.working(await harness.agent()):
        await harness.ended(job)
    read = _read(harness, metrics)
    assert (read["lease_kills_total"], read["released_claims_total"]) == (1, 1)


async def test_lost_session_is_counted_once(harness: AgentHarness, metrics: WorkerMetrics) -> None:
    job = await harness.job(command=ENDS_IN_ATTEMPT_2)
    async with harness.working(await harness.agent()):
        await harness.collector.wait()
        [worker] = await harness.store.list_heartbeats()
        await harness.store.reap(worker.worker, version=None)
        await harness.ended(job)
        assert metrics.why_not_ready(harness.clock.monotonic()) is None
    assert _read(harness, metrics)["lost_sessions_total"] == 1


async def test_draining_agent_is_not_ready(harness: AgentHarness, metrics: WorkerMetrics) -> None:
    agent = await harness.agent()
    async with harness.working(agent) as work:
        agent.drain()
        await work
    assert "draining" in (metrics.why_not_ready(harness.clock.monotonic()) or "")
    assert metrics.failure is None


async def test_failure_is_kept_when_the_agent_fails(
    harness: AgentHarness, metrics: WorkerMetrics
) -> None:
    store = UnreliableStore(harness.store)
    store.is_unavailable = True
    with pytest.raises(errors.StoreUnreachableError):
        await (
            await harness.agent(store=store, config=AgentConfig(store_timeout=timedelta(0)))
        ).run()
    assert metrics.failure == "this worker has failed: the store is unavailable"


async def test_stale_reports_are_not_counted_as_attempts(harness: AgentHarness) -> None:
    metrics = WorkerMetrics()
    reports = [
        _report(Outcome.SUCCEEDED),
        _report(Outcome.FAILED, Reason.TIMEOUT),
        _report(Outcome.SUCCEEDED),
    ]
    metrics.reports_answered(
        reports, [ReportResult.STALE, ReportResult.ACCEPTED, ReportResult.ALREADY]
    )
    read = _read(harness, metrics)
    assert read["stale_reports_total"] == 1
    assert (read["attempts_total Failed Timeout"], read["attempts_total Succeeded "]) == (1, 1)


async def test_two_exporters_count_separately(harness: AgentHarness) -> None:
    one, other = WorkerMetrics(), WorkerMetrics()
    one.running += 1
    assert (_read(harness, one)["running"], _read(harness, other)["running"]) == (1, 0)
