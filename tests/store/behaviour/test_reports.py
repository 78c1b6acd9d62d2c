"""Reports that say what no reader would understand, or more than is kept: refused one by one."""

from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker, end_of
from workron.core import errors
from workron.core.states import REASONS, Reason, State
from workron.store.types import ClaimedJob, Outcome, ReportResult

_WRONG: list[tuple[Any, Any, dict[str, Any]]] = [
    ("Held", Reason.EXIT_CODE, {}),
    ("Cancelled", None, {}),
    ("Skipped", Reason.NOT_NEEDED, {}),
    ("Nonsense", Reason.EXIT_CODE, {}),
    (Outcome.FAILED, "Nonsense", {}),
    (Outcome.FAILED, Reason.UPSTREAM, {}),
    (Outcome.FAILED, Reason.NOT_NEEDED, {}),
    (Outcome.FAILED, None, {}),
    (Outcome.RETRY, "Nonsense", {}),
    (Outcome.RETRY, Reason.BACKOFF, {}),
    (Outcome.SUCCEEDED, None, {"result": "x" * 65_535}),
    (Outcome.SUCCEEDED, None, {"output": b"x" * (2**20 + 1)}),
    (Outcome.FAILED, Reason.EXIT_CODE, {"exit_code": 2**70}),
]


@pytest.mark.parametrize(("outcome", "reason", "about"), _WRONG)
async def test_wrong_report_fails_its_job_and_no_other(
    harness: Harness, worker: Worker, outcome: Any, reason: Any, about: dict[str, Any]
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task(), c=task()))
    claimed = await worker.claim_by_name()
    wrong = end_of(claimed["b"], outcome, reason=reason, **about)
    ends = [end_of(claimed["a"]), wrong, end_of(claimed["c"])]
    completed = await worker.store.complete(worker.session.key, ends)
    assert list(completed.answers) == [ReportResult.ACCEPTED] * 3
    row = await harness.row(run, "b")
    assert (row.state, row.reason) == (State.FAILED, Reason.RESULT_REFUSED)
    assert row.message
    stands = await harness.stands(run)
    assert {stands["a"], stands["c"]} == {"Succeeded"}
    (attempt,) = await harness.store.list_attempts(row.job)
    assert attempt.reason is Reason.RESULT_REFUSED


@pytest.mark.parametrize("reason", sorted(REASONS[State.FAILED]))
async def test_job_fails_by_every_reason_that_a_failure_has(
    harness: Harness, worker: Worker, reason: Reason
) -> None:
    run = await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), Outcome.FAILED, reason=reason)
    assert (await harness.row(run)).reason is reason


async def test_reason_counts_for_nothing_when_the_job_succeeded(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), reason=Reason.EXIT_CODE)
    assert await harness.stand(run) == "Succeeded"
    assert [one.reason for one in await harness.store.list_attempts(run)] == [None]


async def test_largest_result_and_output_are_kept(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    result, output = "x" * 65_534, b"x" * 2**20
    await worker.end(await worker.claim_one(), result=result, output=output)
    assert await harness.store.read_result(run) == result
    assert await harness.store.read_output(run) == output


async def test_beginning_of_a_long_message_is_kept(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), Outcome.FAILED, message="ü" * 5000)
    row = await harness.row(run)
    assert (row.reason, row.message) == (Reason.EXIT_CODE, "ü" * 4096)


async def _append(worker: Worker, claimed: ClaimedJob, chunk: int, data: bytes) -> ReportResult:
    return await worker.store.append_output(worker.session.key, claimed.ref, chunk, data)


@pytest.mark.parametrize(("chunk", "data"), [(-1, b"x"), (-7, b"x"), (0, b"x" * (2**20 + 1))])
async def test_wrong_piece_of_output_is_refused_and_nothing_is_stored(
    harness: Harness, worker: Worker, chunk: int, data: bytes
) -> None:
    run = await harness.submit(plans.array(2))
    one, other = await worker.claim(2)
    with pytest.raises(errors.StoreDataError, match="output chunk"):
        await _append(worker, one, chunk, data)
    ends = [end_of(one, output=b"end"), end_of(other)]
    completed = await worker.store.complete(worker.session.key, ends)
    assert list(completed.answers) == [ReportResult.ACCEPTED, ReportResult.ACCEPTED]
    assert await harness.store.read_output(one.job) == b"end"
    assert await harness.counts(run) == {"Succeeded": 2}


async def test_output_of_a_refused_report_is_not_sent_again(
    harness: Harness, worker: Worker
) -> None:
    run = await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), result="\ud800", output=b"text")
    assert await harness.stand(run) == "Failed/ResultRefused"
    assert await harness.store.read_output(run) == b""
