"""Reports that cannot be stored fail their own job only."""

from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker, report_on
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
async def test_invalid_report_fails_only_its_job(
    harness: Harness, worker: Worker, outcome: Any, reason: Any, about: dict[str, Any]
) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task(), c=task()))
    claimed = await worker.claim_by_name()
    wrong = report_on(claimed["b"], outcome, reason=reason, **about)
    ends = [report_on(claimed["a"]), wrong, report_on(claimed["c"])]
    completed = await worker.store.complete(worker.session.key, ends)
    assert list(completed.answers) == [ReportResult.ACCEPTED] * 3
    row = await harness.row(run, "b")
    assert (row.state, row.reason) == (State.FAILED, Reason.RESULT_REFUSED)
    assert row.message
    stands = await harness.states(run)
    assert {stands["a"], stands["c"]} == {"Succeeded"}
    (attempt,) = await harness.store.list_attempts(row.job)
    assert attempt.reason is Reason.RESULT_REFUSED


@pytest.mark.parametrize("reason", sorted(REASONS[State.FAILED]))
async def test_job_fails_with_every_failure_reason(
    harness: Harness, worker: Worker, reason: Reason
) -> None:
    run = await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), Outcome.FAILED, reason=reason)
    assert (await harness.row(run)).reason is reason


async def test_reason_is_ignored_when_the_job_succeeded(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), reason=Reason.EXIT_CODE)
    assert await harness.state(run) == "Succeeded"
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
async def test_invalid_chunk_is_rejected_and_not_stored(
    harness: Harness, worker: Worker, chunk: int, data: bytes
) -> None:
    run = await harness.submit(plans.array(2))
    one, other = await worker.claim(2)
    with pytest.raises(errors.StoreDataError, match="output chunk"):
        await _append(worker, one, chunk, data)
    ends = [report_on(one, output=b"end"), report_on(other)]
    completed = await worker.store.complete(worker.session.key, ends)
    assert list(completed.answers) == [ReportResult.ACCEPTED, ReportResult.ACCEPTED]
    assert await harness.store.read_output(one.job) == b"end"
    assert await harness.counts(run) == {"Succeeded": 2}


async def test_output_of_a_rejected_report_is_not_stored(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.job())
    await worker.end(await worker.claim_one(), result="\ud800", output=b"text")
    assert await harness.state(run) == "Failed/ResultRefused"
    assert await harness.store.read_output(run) == b""
