"""Inputs are measured first and read once for each upstream, and their errors fail no report."""

from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, mint, report_on
from tests.store.postgres.stage import Stage, WorkerActor
from workron.core import errors
from workron.core.ids import JobId

_ELEMENTS = 70


_LOUD = """
    ALTER FUNCTION workron.{part}(bigint) RENAME TO quiet_{part};
    CREATE FUNCTION workron.{part}(_job bigint) RETURNS {answer} LANGUAGE plpgsql STABLE AS $$
    BEGIN
        RAISE NOTICE '{part} %', _job;
        RETURN workron.quiet_{part}(_job);
    END $$
"""


@pytest.fixture
async def worker(stage: Stage) -> WorkerActor:
    """Register a worker whose claims record whose results they measure, and whose they read."""
    await stage.sql.execute(_LOUD.format(part="result_size", answer="bigint"))
    await stage.sql.execute(_LOUD.format(part="result_text", answer="text"))
    return await stage.worker()


async def _claim(worker: WorkerActor) -> tuple[list[bool], list[str]]:
    notices: list[str] = []

    def add_notice(_: object, message: Any) -> None:
        notices.append(message.message)

    worker.store.connection.add_log_listener(add_notice)
    claimed = await worker.claim(MANY)
    worker.store.connection.remove_log_listener(add_notice)
    return [one.inputs_too_large for one in claimed], sorted(notices)


async def _end_all(stage: Stage, worker: WorkerActor, result: str) -> JobId:
    flow = plans.dag(a=task(count=_ELEMENTS), b=task(), c=task("a", "b", count=5))
    run = await stage.submit(flow)
    ends = [report_on(one, result=result) for one in await worker.claim(MANY)]
    await worker.store.complete(worker.session.key, ends)
    await stage.settle()
    return run


async def test_results_are_read_once_when_many_elements_have_them_as_inputs(
    stage: Stage, worker: WorkerActor
) -> None:
    run = await _end_all(stage, worker, "small")
    array, single = run + 1, run + 2 + _ELEMENTS
    assert await _claim(worker) == (
        [False] * 5,
        [
            *(f"result_size {array}", f"result_size {single}"),
            *(f"result_text {array}", f"result_text {single}"),
        ],
    )


async def test_results_are_not_read_when_they_are_too_large(
    stage: Stage, worker: WorkerActor
) -> None:
    run = await _end_all(stage, worker, "x" * 16_000)
    array, single = run + 1, run + 2 + _ELEMENTS
    assert await _claim(worker) == (
        [True] * 5,
        [f"result_size {array}", f"result_size {single}"],
    )


async def test_end_is_accepted_when_the_claim_in_the_same_call_is_refused(stage: Stage) -> None:
    run = await stage.submit(plans.dag(a=task(), b=task("a")))
    worker = await stage.worker()
    end = report_on(await worker.claim_one(), result=1)
    await stage.replace(
        "result_size", "BEGIN", "BEGIN RAISE EXCEPTION 'too much' USING ERRCODE = '54000';"
    )
    with pytest.raises(errors.StoreDataError, match="too much"):
        await worker.store.complete(worker.session.key, [end], mint())
    stands = await stage.states(run)
    assert (stands["a"], stands["b"]) == ("Succeeded", "Queued")
