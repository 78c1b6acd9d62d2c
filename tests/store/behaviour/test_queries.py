"""The queries of ReadStore."""

from datetime import timedelta

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker, mint_boot
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.core.verdict import Condition
from workron.store.types import Outcome, Signal

UNKNOWN = JobId(1)


async def test_found_run_is_as_submitted(harness: Harness) -> None:
    metadata = {"labels": {"team": "red"}, "annotations": {"n": "ü"}}
    plan = plans.dag("flow", {"digest": "abc", "metadata": metadata}, a=task(count=3))
    run = await harness.submit(plan)
    row = await harness.store.find_run(plans.NAMESPACE, Kind.WORKFLOW, "flow")
    assert row is not None
    assert (row.run, row.last_job, row.uid) == (run, run + 4, plan.identity.uid)
    assert (row.namespace, row.kind, row.name) == (plans.NAMESPACE, Kind.WORKFLOW, "flow")
    assert (row.digest, row.metadata) == ("abc", metadata)
    assert row.submitted_at == harness.database.clock.now()


async def test_ended_run_is_found(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.run_all()
    row = await harness.store.find_run(plans.NAMESPACE, Kind.JOB, "job")
    assert row is not None
    assert row.run == run


async def test_run_is_not_found_when_jobs_only_wait_for_its_name(harness: Harness) -> None:
    await harness.submit(plans.job("down", outside=[plans.outside("up")]))
    assert await harness.store.find_run(plans.NAMESPACE, Kind.JOB, "up") is None
    assert await harness.store.find_run(plans.NAMESPACE, Kind.WORKFLOW, "down") is None
    assert await harness.store.find_run("elsewhere", Kind.JOB, "down") is None


async def test_run_is_found_by_the_id_of_each_of_its_jobs(harness: Harness) -> None:
    run = await harness.submit(plans.dag("flow", a=task(count=2)))
    await harness.submit(plans.dag("flow", {"namespace": "elsewhere"}, a=task()))
    found = [await harness.store.get_run(row.job) for row in await harness.store.list_jobs(run)]
    assert found == [await harness.store.find_run(plans.NAMESPACE, Kind.WORKFLOW, "flow")] * 4
    assert await harness.store.get_run(UNKNOWN) is None


async def test_runs_are_listed_newest_first(harness: Harness) -> None:
    submitted = [await harness.submit(plans.job(name)) for name in "abc"]
    assert [row.run for row in await harness.store.list_runs()] == submitted[::-1]


async def test_runs_of_one_namespace_are_listed(harness: Harness) -> None:
    await harness.submit(plans.job("a"))
    other = await harness.submit(plans.job("a", namespace="elsewhere"))
    assert [row.run for row in await harness.store.list_runs("elsewhere")] == [other]
    assert not await harness.store.list_runs("nowhere")


async def test_queries_are_empty_when_the_run_is_unknown(harness: Harness) -> None:
    assert not await harness.store.list_jobs(UNKNOWN)
    assert not await harness.store.get_jobs([UNKNOWN])
    assert not await harness.store.filter_ended([UNKNOWN])
    assert await harness.store.find_job(UNKNOWN, "a") is None
    assert await harness.store.get_spec(UNKNOWN) is None
    assert not await harness.store.list_specs(UNKNOWN)
    assert not await harness.store.list_attempts(UNKNOWN)
    assert not await harness.store.list_blockers(UNKNOWN)
    assert not await harness.store.count_states(UNKNOWN)
    assert await harness.store.read_result(UNKNOWN) is None
    assert await harness.store.read_output(UNKNOWN) == b""


async def test_operations_return_false_when_the_run_is_unknown(harness: Harness) -> None:
    assert not await harness.store.cancel(UNKNOWN)
    assert not await harness.store.suspend(UNKNOWN)
    assert not await harness.store.resume(UNKNOWN)


async def test_job_rows_have_their_group_and_index(harness: Harness) -> None:
    plan = plans.dag("flow", {"priority": 4}, a=task(pool="large"))
    run = await harness.submit(plan)
    flow, row = await harness.store.list_jobs(run)
    assert (flow.kind, flow.name, flow.group_id) == (Kind.WORKFLOW, "flow", None)
    assert (row.kind, row.name, row.group_id) == (Kind.JOB, "a", run)
    assert (row.pool, row.priority, row.run) == ("large", 4, run)
    assert (row.due, row.started_at, row.finished_at) == (None, None, None)
    assert (row.worker, row.exit_code, row.message) == (None, None, None)


async def test_ended_job_has_start_and_end_times(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    started = harness.database.clock.now()
    claimed = await worker.claim_one()
    await harness.advance(timedelta(seconds=3))
    await worker.end(claimed)
    row = await harness.row(run)
    assert (row.started_at, row.finished_at) == (started, started + timedelta(seconds=3))


async def test_specs_are_returned(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(count=2), b=task()))
    specs = await harness.store.list_specs(run)
    run_a, run_b = {"command": "run a"}, {"command": "run b"}
    assert list(specs.values()) == [{"tasks": 2}, run_a, run_a, run_a, run_b]
    assert list(specs) == [run + offset for offset in range(5)]
    assert specs[JobId(run + 2)] is specs[JobId(run + 3)]


async def test_blockers_have_the_conditions_of_the_edges(harness: Harness) -> None:
    up = await harness.submit(plans.job("up"))
    plan = plans.dag(
        a=task(outside=[plans.outside("up", Condition.FINISHED)]),
        b=task(when={"a": Condition.FAILED}),
    )
    run = await harness.submit(plan)
    assert await _blocking(harness, run + 1) == [(up, "Finished")]
    assert await _blocking(harness, run + 2) == [(run + 1, "Failed")]


async def _blocking(harness: Harness, job: int) -> list[tuple[JobId | None, str]]:
    blockers = await harness.store.list_blockers(JobId(job))
    return [(blocker.job, blocker.condition) for blocker in blockers]


async def test_external_dependency_has_a_job_when_it_was_submitted(harness: Harness) -> None:
    run = await harness.submit(plans.job("down", outside=[plans.outside("up")]))
    assert await _blocking(harness, run) == [(None, "Succeeded")]
    up = await harness.submit(plans.job("up"))
    assert await _blocking(harness, run) == [(up, "Succeeded")]


async def test_blockers_are_listed_unfinished_first(harness: Harness, worker: Worker) -> None:
    plan = plans.dag(a=task(), b=task(), c=task("a", when={"b": Condition.FINISHED}))
    run = await harness.submit(plan)
    claimed = await worker.claim_by_name()
    await worker.end(claimed["a"])
    blockers = await harness.store.list_blockers(JobId(run + 3))
    assert [(one.name, one.job, one.condition, one.state) for one in blockers] == [
        ("b", run + 2, "Finished", State.RUNNING),
        ("a", run + 1, "Succeeded", State.SUCCEEDED),
    ]


async def test_blocking_group_is_running_when_one_of_its_members_has_run(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(count=2), b=task("a"), c=task()))
    down = await harness.submit(
        plans.job("down", outside=[plans.outside("flow", kind=Kind.WORKFLOW)])
    )

    async def seen() -> list[State | None]:
        (array,) = await harness.store.list_blockers(JobId(run + 4))
        (flow,) = await harness.store.list_blockers(down)
        return [array.state, flow.state]

    assert await seen() == [State.WAITING, State.WAITING]
    claimed = await worker.claim(3)
    (alone,) = [one for one in claimed if one.name == "c"]
    elements = [one for one in claimed if one.name == "a"]
    await worker.release(*elements)
    assert await seen() == [State.WAITING, State.RUNNING]
    await worker.end(alone)
    assert await seen() == [State.WAITING, State.RUNNING]
    await worker.claim_one()
    assert await seen() == [State.RUNNING, State.RUNNING]


async def test_unknown_name_is_a_blocker(harness: Harness) -> None:
    run = await harness.submit(plans.job("down", outside=[plans.outside("up")]))
    (blocker,) = await harness.store.list_blockers(run)
    assert (blocker.job, blocker.kind, blocker.name) == (None, Kind.JOB, "up")
    assert (blocker.condition, blocker.state) == ("Succeeded", None)


async def test_nothing_blocks_a_job_without_upstreams(harness: Harness) -> None:
    assert not await harness.store.list_blockers(await harness.submit(plans.job()))


async def test_attempts_are_listed_with_their_outcomes(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.release(await worker.claim_one())
    await worker.retry(await worker.claim_one(), delay_seconds=0)
    await harness.promote()
    claimed = await worker.claim_one()
    await harness.advance(timedelta(seconds=2))
    await worker.end(claimed, Outcome.FAILED, reason=Reason.SIGNAL, exit_code=137)
    attempts = sorted(await harness.store.list_attempts(run), key=lambda one: one.attempt)
    assert [one.outcome for one in attempts] == ["Released", "Retried", "Failed"]
    last = attempts[-1]
    assert (last.job, last.attempt, last.worker) == (run, 3, "worker")
    assert (last.reason, last.exit_code) == (Reason.SIGNAL, 137)
    assert last.finished_at - last.started_at == timedelta(seconds=2)


async def test_running_attempt_is_not_listed(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.claim_one()
    assert not await harness.store.list_attempts(run)


async def test_attempt_of_a_cancelled_job_is_listed(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.store.cancel(run)
    await worker.end(claimed)
    assert [one.outcome for one in await harness.store.list_attempts(run)] == ["Cancelled"]


async def test_progress_counts_commands_by_state(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(count=4), b=task("a")))
    one, two, *_ = await worker.claim(3)
    await worker.end(one)
    await worker.fail(two)
    progress = await harness.store.count_states(run)
    assert {state: count for state, count in progress.items() if count} == {
        State.QUEUED: 1,
        State.RUNNING: 1,
        State.SUCCEEDED: 1,
        State.FAILED: 1,
        State.WAITING: 1,
    }


async def test_demand_counts_ready_jobs_by_pool(harness: Harness) -> None:
    await harness.submit(plans.array(3))
    await harness.submit(plans.dag("two", a=task(pool="large"), b=task("a")))
    await harness.submit(plans.job("far", namespace="elsewhere"))
    demand = await harness.store.pool_demand()
    assert {pool: waiting.ready for pool, waiting in demand.items()} == {
        (plans.NAMESPACE, "default"): 3,
        (plans.NAMESPACE, "large"): 1,
        ("elsewhere", "default"): 1,
    }


async def test_workers_are_counted_by_pool_until_deregistered_or_reaped(
    harness: Harness,
) -> None:
    assert await harness.store.count_workers() == {}
    one, two = await harness.worker("one"), await harness.worker("two")
    await harness.worker("large", pool="large", namespace="elsewhere")
    assert await harness.store.count_workers() == {
        (plans.NAMESPACE, "default"): 2,
        ("elsewhere", "large"): 1,
    }
    await harness.store.deregister(one.session.key)
    await harness.reap(two)
    assert await harness.store.count_workers() == {("elsewhere", "large"): 1}


async def test_store_has_a_maintainer_while_its_lease_is_valid(harness: Harness) -> None:
    assert not await harness.store.has_maintainer()
    boot = mint_boot()
    await harness.store.elect(boot, 10)
    assert await harness.store.has_maintainer()
    await harness.advance(timedelta(seconds=11))
    assert not await harness.store.has_maintainer()
    await harness.store.elect(boot, 10)
    await harness.store.resign(boot)
    assert not await harness.store.has_maintainer()


async def test_signals_of_a_run_are_listed(harness: Harness, worker: Worker) -> None:
    flow = await harness.submit(plans.dag(a=task(), b=task(), c=task("a")))
    other = await harness.submit(plans.job("other"))
    claimed = await worker.claim(3)
    assert await harness.store.list_signals(flow) == {}
    await harness.store.cancel(flow)
    await harness.store.suspend(other)
    running = [one.job for one in claimed if one.run == "flow"]
    assert await harness.store.list_signals(flow) == dict.fromkeys(running, Signal.CANCEL)
    assert await harness.store.list_signals(other) == {other: Signal.SUSPEND}
    for one in claimed:
        await worker.end(one)
    assert await harness.store.list_signals(flow) == {}


async def test_wait_for_work_returns_after_its_timeout(harness: Harness) -> None:
    await harness.store.wait_for_work(0.01)


async def test_audit_starts_again_after_the_last_waiting_job(harness: Harness) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a"), c=task("a"), d=task("a")))
    rows = await harness.rows(run)
    waiting = sorted(rows[name].job for name in ("flow", "b", "c", "d"))
    lasts = [0]
    for _ in range(3):
        audited = await harness.store.audit(2, after=lasts[-1])
        assert audited.missed == 0
        lasts.append(audited.last)
    assert lasts == [0, waiting[1], waiting[3], 0]
