"""How inputs are put together: by size first, once for each upstream, and blamed on no end."""

from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import MANY, mint, report_on
from tests.store.postgres.stage import Hand, Stage
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
async def worker(stage: Stage) -> Hand:
    """Register a worker whose claims tell whose results they measure, and whose they read."""
    await stage.sql.execute(_LOUD.format(part="result_size", answer="bigint"))
    await stage.sql.execute(_LOUD.format(part="result_text", answer="text"))
    return await stage.worker()


async def _claim(worker: Hand) -> tuple[list[bool], list[str]]:
    heard: list[str] = []

    def hear(_: object, message: Any) -> None:
        heard.append(message.message)

    worker.store.connection.add_log_listener(hear)
    claimed = await worker.claim(MANY)
    worker.store.connection.remove_log_listener(hear)
    return [one.inputs_too_large for one in claimed], sorted(heard)


async def _end_all(stage: Stage, worker: Hand, result: str) -> JobId:
    flow = plans.dag(a=task(count=_ELEMENTS), b=task(), c=task("a", "b", count=5))
    run = await stage.submit(flow)
    ends = [report_on(one, result=result) for one in await worker.claim(MANY)]
    await worker.store.complete(worker.session.key, ends)
    await stage.settle()
    return run


async def test_results_are_measured_and_read_once_though_many_elements_are_given_them(
    stage: Stage, worker: Hand
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


async def test_nothing_is_read_of_results_that_are_too_large(stage: Stage, worker: Hand) -> None:
    run = await _end_all(stage, worker, "x" * 16_000)
    array, single = run + 1, run + 2 + _ELEMENTS
    assert await _claim(worker) == (
        [True] * 5,
        [f"result_size {array}", f"result_size {single}"],
    )


async def test_end_is_accepted_when_the_claim_that_came_with_it_is_refused(stage: Stage) -> None:
    run = await stage.submit(plans.dag(a=task(), b=task("a")))
    worker = await stage.worker()
    end = report_on(await worker.claim_one(), result=1)
    await stage.replace(
        "result_size", "BEGIN", "BEGIN RAISE EXCEPTION 'too much' USING ERRCODE = '54000';"
    )
    with pytest.raises(errors.StoreDataError, match="too much"):
        await worker.store.complete(worker.session.key, [end], mint())
    stands = await stage.stands(run)
    assert (stands["a"], stands["b"]) == ("Succeeded", "Queued")
