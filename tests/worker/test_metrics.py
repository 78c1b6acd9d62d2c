"""What an agent at work tells its meter, read as Prometheus would read it."""

import asyncio
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families as families

from tests.worker.shop import Shop
from tests.worker.test_faults import Door
from workron.core import errors
from workron.core.ids import ClaimId, Fence, JobId
from workron.core.states import Reason
from workron.store.types import AttemptReport, Outcome, ReportResult
from workron_worker.config import AgentConfig
from workron_worker.executor import CommandEnd, CommandTask, OnEnd, OnOutput
from workron_worker.metrics import WorkerMetrics
from workron_worker.metrics_exporter import WorkerExporter
from workron_worker.runner_client import RunnerExecutor

_TWICE = 'if [ "$WORKRON_ATTEMPT" = 1 ]; then echo on; exec sleep 1000; fi'


@pytest.fixture
def metrics(shop: Shop) -> WorkerMetrics:
    shop.metrics = made = WorkerMetrics()
    return made


def _read(shop: Shop, metrics: WorkerMetrics) -> Mapping[str, float]:
    """Give each series by its short name and the values of its labels."""
    text = generate_latest(WorkerExporter(metrics, shop.slots.count, shop.clock).registry).decode()
    return {
        " ".join([sample.name, *sample.labels.values()]).removeprefix(
            "workron_worker_"
        ): sample.value
        for family in families(text)
        for sample in family.samples
    }


def _end(outcome: Outcome, reason: Reason | None = None) -> AttemptReport:
    return AttemptReport(JobId(1), ClaimId(uuid.uuid4()), Fence(1), outcome, reason)


async def test_claims_and_ends_are_counted_and_nothing_runs_afterwards(
    shop: Shop, metrics: WorkerMetrics
) -> None:
    good = await shop.workflow({"name": "many", "count": 5, "command": "true"})
    bad = await shop.job(command="exit 3", maxAttempts=2, backoff={"initial": "1ms"})
    async with shop.working(await shop.agent()):
        await shop.ended(good)
        await shop.ended(bad)
    read = _read(shop, metrics)
    assert read["claims_total"] == 7
    assert {name: value for name, value in read.items() if name.startswith("attempts_total")} == {
        "attempts_total Succeeded ": 5,
        "attempts_total Retry ExitCode": 1,
        "attempts_total Failed ExitCode": 1,
    }
    assert (read["running"], read["slots"]) == (0, 4)
    assert read["claim_latency_seconds_count"] >= 2
    assert read["claim_latency_seconds_sum"] > 0


async def test_running_command_occupies_a_slot(shop: Shop, metrics: WorkerMetrics) -> None:
    await shop.job(command="echo on; exec sleep 1000")
    agent = await shop.agent()
    async with shop.working(agent):
        await shop.ear.wait()
        assert _read(shop, metrics)["running"] == 1
        agent.kill()
    assert _read(shop, metrics)["running"] == 0
    assert _read(shop, metrics)["released_claims_total"] == 1


async def test_time_of_a_start_is_what_the_runner_measured(
    shop: Shop, metrics: WorkerMetrics
) -> None:
    shop.executor.close()
    shop.executor = RunnerExecutor(grace=timedelta(minutes=1), boot=shop.boot)
    root = await shop.workflow({"name": "many", "count": 3, "command": "true"})
    async with shop.working(await shop.agent()):
        await shop.ended(root)
    read = _read(shop, metrics)
    assert read["spawn_latency_seconds_count"] == 3
    assert 0 < read["spawn_latency_seconds_sum"] < 60


async def test_commands_that_are_cut_off_are_counted_once_and_released(
    shop: Shop, metrics: WorkerMetrics
) -> None:
    door = Door(shop.store)
    job = await shop.job(command=_TWICE)
    async with shop.working(await shop.agent(door=door)):
        await shop.ear.wait()
        door.is_shut = True
        shop.clock.turned += 6
        assert metrics.why_not_ready(shop.clock.monotonic()) is None
        shop.clock.turned += 6
        assert "last answered heartbeat" in (metrics.why_not_ready(shop.clock.monotonic()) or "")
        assert _read(shop, metrics)["heartbeat_age_seconds"] >= 12
        while not _read(shop, metrics)["lease_kills_total"]:
            await asyncio.sleep(0)
        door.is_shut = False
        await shop.ended(job)
        assert metrics.why_not_ready(shop.clock.monotonic()) is None
        assert _read(shop, metrics)["heartbeat_age_seconds"] < 6
    read = _read(shop, metrics)
    assert (
        read["lease_kills_total"],
        read["released_claims_total"],
        read["lost_sessions_total"],
    ) == (1, 1, 0)


class _Overdue:
    """An executor that ends its first command by itself, as it heard of no beat."""

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


async def test_command_that_the_executor_cut_off_is_counted_as_well(
    shop: Shop, metrics: WorkerMetrics
) -> None:
    overdue: Any = _Overdue(shop.executor)
    shop.executor = overdue
    job = await shop.job(command="true")
    async with shop.working(await shop.agent()):
        await shop.ended(job)
    read = _read(shop, metrics)
    assert (read["lease_kills_total"], read["released_claims_total"]) == (1, 1)


async def test_lost_session_is_counted_once(shop: Shop, metrics: WorkerMetrics) -> None:
    job = await shop.job(command=_TWICE)
    async with shop.working(await shop.agent()):
        await shop.ear.wait()
        [worker] = await shop.store.list_heartbeats()
        await shop.store.reap(worker.worker, version=None)
        await shop.ended(job)
        assert metrics.why_not_ready(shop.clock.monotonic()) is None
    assert _read(shop, metrics)["lost_sessions_total"] == 1


async def test_draining_agent_is_not_ready(shop: Shop, metrics: WorkerMetrics) -> None:
    agent = await shop.agent()
    async with shop.working(agent) as work:
        agent.drain()
        await work
    assert "draining" in (metrics.why_not_ready(shop.clock.monotonic()) or "")
    assert metrics.failure is None


async def test_agent_that_gives_up_is_hopeless(shop: Shop, metrics: WorkerMetrics) -> None:
    door = Door(shop.store)
    door.is_shut = True
    with pytest.raises(errors.StoreUnreachableError):
        await (await shop.agent(door=door, config=AgentConfig(store_timeout=timedelta(0)))).run()
    assert metrics.failure == "this worker has failed: the store is away"


async def test_end_that_is_stale_is_no_end(shop: Shop) -> None:
    metrics = WorkerMetrics()
    ends = [_end(Outcome.SUCCEEDED), _end(Outcome.FAILED, Reason.TIMEOUT), _end(Outcome.SUCCEEDED)]
    metrics.reports_answered(
        ends, [ReportResult.STALE, ReportResult.ACCEPTED, ReportResult.ALREADY]
    )
    read = _read(shop, metrics)
    assert read["stale_reports_total"] == 1
    assert (read["attempts_total Failed Timeout"], read["attempts_total Succeeded "]) == (1, 1)


async def test_two_exporters_know_nothing_of_each_other(shop: Shop) -> None:
    one, other = WorkerMetrics(), WorkerMetrics()
    one.running += 1
    assert (_read(shop, one)["running"], _read(shop, other)["running"]) == (1, 0)
