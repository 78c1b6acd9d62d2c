"""Concurrent claims, and reports on a claim that another worker holds by now."""

from tests.store.behaviour import plans
from tests.store.behaviour.worker import mint
from tests.store.postgres.stage import Stage, WorkerActor
from workron.core.ids import JobId
from workron.store.types import ClaimedJob, ReportResult


async def _claim_two_at_once(stage: Stage) -> list[list[str]]:
    await stage.submit(plans.job("old"), plans.job("new"))
    one, other = await stage.worker("one"), await stage.worker("other")
    await one.begin()
    first = await one.claim()
    claiming = await stage.start(other, other.claim())
    was_through = claiming.done()
    await one.commit()
    second = await claiming
    assert was_through == bool(second)
    return [[claimed.name for claimed in claims] for claims in (first, second)]


async def test_claims_get_different_jobs_when_they_meet_at_the_oldest(stage: Stage) -> None:
    assert await _claim_two_at_once(stage) == [["old"], ["new"]]


async def test_claim_waits_and_finds_nothing_when_it_does_not_skip_locked_rows(
    stage: Stage,
) -> None:
    await stage.without("claim")
    assert await _claim_two_at_once(stage) == [["old"], []]


async def test_claim_returns_the_same_job_when_it_is_sent_twice_at_once(stage: Stage) -> None:
    await stage.submit(plans.job("old"), plans.job("new"))
    one = await stage.worker()
    other, claims = await stage.twin(one), mint()
    await one.begin()
    first = await one.store.claim(one.session.key, claims)
    claiming = await stage.start(other, other.store.claim(one.session.key, claims))
    assert not claiming.done()
    await one.commit()
    assert await claiming == first
    assert await stage.sql.fetchval("SELECT count(*) FROM workron.ready") == 1


async def test_claim_writes_nothing_when_it_finds_nothing(stage: Stage) -> None:
    worker = await stage.worker()
    await worker.begin()
    assert not await worker.claim()
    written = "SELECT pg_current_xact_id_if_assigned()::text"
    assert await worker.store.connection.fetchval(written) is None
    await worker.commit()


async def _report_a_released_claim(stage: Stage) -> tuple[ReportResult, JobId]:
    run = await stage.submit(plans.job())
    one, other = await stage.worker("one"), await stage.worker("other")
    released = await one.claim_one()
    await one.release(released)
    await other.claim_one()
    return await one.fail(released), run


async def test_report_is_stale_when_the_job_is_claimed_again(stage: Stage) -> None:
    answer, run = await _report_a_released_claim(stage)
    assert answer is ReportResult.STALE
    assert await stage.states(run) == {"job": "Running"}


async def test_report_ends_another_claim_when_claims_are_not_compared(
    stage: Stage,
) -> None:
    await stage.without("claim")
    _, run = await _report_a_released_claim(stage)
    assert await stage.states(run) == {"job": "Failed/ExitCode"}


async def _running_twice(stage: Stage) -> tuple[JobId, ClaimedJob, WorkerActor, WorkerActor]:
    run = await stage.submit(plans.job())
    one = await stage.worker()
    return run, await one.claim_one(), one, await stage.twin(one)


async def test_end_is_answered_already_when_it_is_reported_twice_at_once(stage: Stage) -> None:
    run, claimed, one, other = await _running_twice(stage)
    await one.begin()
    assert await one.end(claimed) is ReportResult.ACCEPTED
    ending = await stage.start(other, other.fail(claimed))
    await one.commit()
    assert await ending is ReportResult.ALREADY
    assert await stage.states(run) == {"job": "Succeeded"}


async def test_end_is_stale_when_the_claim_is_released_at_once(stage: Stage) -> None:
    run, claimed, one, other = await _running_twice(stage)
    await one.begin()
    await one.release(claimed)
    ending = await stage.start(other, other.end(claimed))
    await one.commit()
    assert await ending is ReportResult.STALE
    assert await stage.states(run) == {"job": "Queued"}


async def test_release_is_stale_when_the_claim_is_ended_at_once(stage: Stage) -> None:
    run, claimed, one, other = await _running_twice(stage)
    await one.begin()
    await one.end(claimed)
    releasing = await stage.start(other, other.release(claimed))
    await one.commit()
    assert await releasing == [ReportResult.STALE]
    assert await stage.states(run) == {"job": "Succeeded"}


async def test_release_is_answered_already_when_it_is_sent_twice_at_once(stage: Stage) -> None:
    _, claimed, one, other = await _running_twice(stage)
    await one.begin()
    await one.release(claimed)
    releasing = await stage.start(other, other.release(claimed))
    await one.commit()
    assert await releasing == [ReportResult.ALREADY]
