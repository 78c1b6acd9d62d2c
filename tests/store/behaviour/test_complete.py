"""complete: one accepted end for each claim, regardless of repetitions."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker, mint, mint_boot, report_on
from workron.core import errors
from workron.core.ids import SessionKey
from workron.core.states import Reason, State
from workron.store.types import AttemptReport, Outcome, ReportResult


async def test_job_ends_when_its_end_is_reported(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await harness.advance(timedelta(seconds=5))
    assert await worker.end(await worker.claim_one(), exit_code=0) is ReportResult.ACCEPTED
    row = await harness.row(run)
    assert (row.state, row.reason, row.exit_code) == (State.SUCCEEDED, None, 0)
    assert row.finished_at == harness.database.clock.now()
    assert (row.attempts, row.failures, row.losses, row.worker) == (1, 0, 0, "worker")


async def test_failure_keeps_what_was_reported(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    about = {"reason": Reason.SIGNAL, "message": "killed by KILL", "exit_code": 137}
    await worker.end(await worker.claim_one(), Outcome.FAILED, **about)
    row = await harness.row(run)
    assert row.state is State.FAILED
    assert {"reason": row.reason, "message": row.message, "exit_code": row.exit_code} == about
    assert (row.attempts, row.failures) == (1, 1)


async def test_second_report_changes_nothing_when_the_first_was_accepted(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await worker.end(claimed, result="first", output=b"first")
    assert await worker.end(claimed, result="second", output=b"second") is ReportResult.ALREADY
    assert await worker.fail(claimed) is ReportResult.ALREADY
    assert await harness.store.read_result(run) == "first"
    assert await harness.store.read_output(run) == b"first"
    assert await harness.state(run) == "Succeeded"


async def test_downstream_counts_down_once_when_the_end_is_reported_twice(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task(), c=task("a", "b")))
    claimed = await worker.claim_by_name()
    await worker.end(claimed["a"])
    await worker.end(claimed["a"])
    assert await harness.state(run, "c") == "Waiting/Upstream"


async def test_report_is_stale_when_the_claim_was_never_made(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job())
    claimed = await worker.claim_one()
    end = report_on(claimed)
    unknown = msgspec.structs.replace(end, claim=mint()[0])
    assert await worker.report(unknown) is ReportResult.STALE


async def test_report_is_stale_when_the_job_was_claimed_again(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    old = await worker.claim_one()
    await harness.reap(worker)
    heir = await harness.worker()
    new = await heir.claim_one()
    assert await heir.end(old, result="old", output=b"old") is ReportResult.STALE
    assert await heir.end(new, result="new") is ReportResult.ACCEPTED
    assert await harness.store.read_result(run) == "new"
    assert await harness.store.read_output(run) == b""


async def test_nothing_is_stored_when_the_worker_was_reaped(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await harness.reap(worker)
    with pytest.raises(errors.SessionError):
        await worker.end(claimed, result="old", output=b"old")
    assert await harness.state(run) == "Queued"
    assert await harness.store.read_result(run) is None
    assert await harness.store.read_output(run) == b""


async def test_session_is_rejected_when_it_was_never_registered(harness: Harness) -> None:
    with pytest.raises(errors.SessionError):
        await harness.store.complete(SessionKey(mint_boot()), [])


async def test_another_worker_cannot_end_a_claim(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    other = await harness.worker("other")
    assert await other.end(claimed) is ReportResult.STALE
    assert await harness.state(run) == "Running"


async def test_answers_have_the_order_of_the_reports(harness: Harness, worker: Worker) -> None:
    await harness.submit(plans.array(4))
    one, two, three, four = await worker.claim(4)
    await worker.end(two)
    await worker.release(three)
    unknown = msgspec.structs.replace(report_on(one), claim=mint()[0])
    ends = [report_on(four), unknown, report_on(two), report_on(one, Outcome.FAILED)]
    completed = await worker.store.complete(worker.session.key, ends)
    assert completed.answers == [
        ReportResult.ACCEPTED,
        ReportResult.STALE,
        ReportResult.ALREADY,
        ReportResult.ACCEPTED,
    ]


async def test_released_claim_cannot_be_completed(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await worker.release(claimed)
    assert await worker.end(claimed, result=1) is not ReportResult.ACCEPTED
    assert await harness.state(run) == "Queued"
    assert await harness.store.read_result(run) is None


async def test_report_does_not_apply_to_a_later_attempt_with_the_same_claim_id(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    first = await worker.claim_one()
    await worker.release(first)
    # A delayed copy of the claim call.
    (second,) = await worker.store.claim(worker.session.key, [first.claim])
    assert await worker.end(first, result="old", output=b"old") is ReportResult.STALE
    assert await worker.end(second, result="new") is ReportResult.ACCEPTED
    assert await harness.store.read_result(run) == "new"
    assert await harness.store.read_output(run) == b""


async def test_reports_are_answered_separately_when_they_share_a_claim_id(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    first = await worker.claim_one()
    await worker.release(first)
    (second,) = await worker.store.claim(worker.session.key, [first.claim])
    ends = [report_on(first, result="old"), report_on(second, result="new")]
    completed = await worker.store.complete(worker.session.key, ends)
    assert completed.answers[0] is not ReportResult.ACCEPTED
    assert completed.answers[1] is ReportResult.ACCEPTED
    assert await harness.store.read_result(run) == "new"


async def test_report_counts_once_when_it_is_twice_in_a_call(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    end = report_on(await worker.claim_one(), result="once", output=b"once")
    completed = await worker.store.complete(worker.session.key, [end, end])
    assert list(completed.answers) == [ReportResult.ACCEPTED, ReportResult.ALREADY]
    assert len(await harness.store.list_attempts(run)) == 1
    assert await harness.store.read_result(run) == "once"
    assert await harness.store.read_output(run) == b"once"


async def test_report_is_accepted_after_one_with_the_wrong_job_for_its_claim(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.array(2))
    one, two = await worker.claim(2)
    mistaken = AttemptReport(two.job, *one.ref, Outcome.SUCCEEDED)
    ends = [mistaken, report_on(one), report_on(two)]
    completed = await worker.store.complete(worker.session.key, ends)
    assert list(completed.answers) == [
        ReportResult.STALE,
        ReportResult.ACCEPTED,
        ReportResult.ACCEPTED,
    ]


async def test_complete_returns_new_claims(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a"), c=task("b")))
    end = report_on(await worker.claim_one())
    completed = await worker.store.complete(worker.session.key, [end], mint(2))
    assert [one.name for one in completed.claimed] == ["b"]
    assert await harness.state(run, "b") == "Running"


async def test_repeated_call_returns_the_same_claims_when_its_answer_was_lost(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.array(4))
    end, wanted = report_on(await worker.claim_one()), mint(2)
    first = await worker.store.complete(worker.session.key, [end], wanted)
    second = await worker.store.complete(worker.session.key, [end], wanted)
    assert list(second.answers) == [ReportResult.ALREADY]
    assert {one.claim: one.job for one in second.claimed} == {
        one.claim: one.job for one in first.claimed
    }
    assert len(await worker.claim(4)) == 1


async def test_complete_only_claims_when_there_are_no_reports(
    harness: Harness, worker: Worker
) -> None:
    await harness.submit(plans.job())
    completed = await worker.store.complete(worker.session.key, [], mint())
    assert [one.name for one in completed.claimed] == ["job"]


async def test_retry_waits_for_its_backoff(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    assert await worker.retry(await worker.claim_one(), delay_seconds=10) is ReportResult.ACCEPTED
    row = await harness.row(run)
    assert (row.state, row.reason, row.failures) == (State.WAITING, Reason.BACKOFF, 1)
    assert row.due == harness.database.clock.now() + timedelta(seconds=10)
    assert not await worker.claim()


async def test_report_of_a_retry_is_already_known_when_repeated(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    claimed = await worker.claim_one()
    await worker.retry(claimed)
    assert await worker.retry(claimed) is ReportResult.ALREADY
    assert (await harness.row(run)).failures == 1


async def test_failures_add_up_over_attempts(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    for _ in range(3):
        await worker.retry(await worker.claim_one(), delay_seconds=0)
        await harness.promote()
    await worker.fail(await worker.claim_one())
    row = await harness.row(run)
    assert (row.state, row.attempts, row.failures) == (State.FAILED, 4, 4)


RESULTS = [0, False, "", [], {}, {"a": [1, 2.5, None]}, "\U0001f9ea", 2**53, -1]


@pytest.mark.parametrize("result", RESULTS, ids=repr)
async def test_result_is_returned_unchanged(harness: Harness, worker: Worker, result: Any) -> None:
    run = await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), result=result)
    assert await harness.store.read_result(run) == result


async def test_result_is_none_when_none_was_reported(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.end(await worker.claim_one())
    assert await harness.store.read_result(run) is None


@pytest.mark.parametrize("result", ["a\0b", {"\0": 1}, "\ud800", 10**400, float("nan")], ids=ascii)
async def test_bad_result_fails_alone(harness: Harness, worker: Worker, result: Any) -> None:
    run = await harness.submit(plans.array(5))
    claimed = await worker.claim(5)
    ends = [report_on(one, result=result if one.index == 3 else one.index) for one in claimed]
    completed = await worker.store.complete(worker.session.key, ends)
    assert set(completed.answers) == {ReportResult.ACCEPTED}
    stands = await harness.states(run)
    odd = stands.pop("work[3]")
    assert odd in {"Succeeded", "Failed/ResultRefused"}
    good = [f"work[{i}]" for i in (0, 1, 2, 4)]
    assert {stands[name] for name in good} == {"Succeeded"}


async def test_rejected_result_is_explained(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), result={"text": "\ud800"})
    row = await harness.row(run)
    assert (row.state, row.reason) == (State.FAILED, Reason.RESULT_REFUSED)
    assert row.message
    assert await harness.store.read_result(run) is None


@pytest.mark.parametrize("message", ["a\0b", "\ud800", "\U0001f9ea", "\x1b[31m", "x" * 100_000])
async def test_unusual_message_fails_no_other_job(
    harness: Harness, worker: Worker, message: str
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task()))
    claimed = await worker.claim_by_name()
    ends = [report_on(claimed["a"], Outcome.FAILED, message=message), report_on(claimed["b"])]
    completed = await worker.store.complete(worker.session.key, ends)
    assert list(completed.answers) == [ReportResult.ACCEPTED, ReportResult.ACCEPTED]
    stands = await harness.states(run)
    assert stands["a"].startswith("Failed/")
    assert stands["b"] == "Succeeded"


async def test_downstreams_of_a_rejected_result_are_skipped(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task("a")))
    await worker.end(await worker.claim_one(), result="\ud800")
    assert await harness.state(run, "b") == "Skipped/UpstreamFailed"
