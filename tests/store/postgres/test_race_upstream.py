"""A downstream that is submitted while its upstream ends, in any table.

Each case runs twice: with the lock of a submission on its upstream, and without it. Then the
downstream waits forever for an end that was propagated before.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.worker import MANY
from tests.store.postgres.stage import Actor, Stage, WorkerActor
from workron.core.ids import JobId
from workron.core.verdict import Condition

_UP = plans.job("up")
_DOWN = plans.job("down", outside=[plans.outside("up", Condition.FINISHED)])

Ending = tuple[Actor | WorkerActor, Coroutine[Any, Any, object]]
Place = Callable[[Stage], Awaitable[Ending]]
Order = Callable[[Stage, Actor | WorkerActor, Coroutine[Any, Any, object]], Awaitable[JobId]]


async def _running(stage: Stage) -> Ending:
    await stage.submit(_UP)
    worker = await stage.worker()
    return worker, worker.end(await worker.claim_one())


async def _waiting(stage: Stage) -> Ending:
    up = await stage.submit(plans.job("up", outside=[plans.outside("never")]))
    return await _cancel_and_propagate(stage, up)


async def _ready(stage: Stage) -> Ending:
    return await _cancel_and_propagate(stage, await stage.submit(_UP))


async def _deferred(stage: Stage) -> Ending:
    up = await stage.submit(_UP)
    worker = await stage.worker()
    await worker.retry(await worker.claim_one())
    return await _cancel_and_propagate(stage, up)


async def _unpropagated(stage: Stage) -> Ending:
    await stage.watcher.cancel(await stage.submit(_UP))
    settler = await stage.actor()
    return settler, settler.propagate(MANY)


async def _cancel_and_propagate(stage: Stage, up: JobId) -> Ending:
    canceller = await stage.actor()

    async def end() -> None:
        await canceller.cancel(up)
        await canceller.propagate(MANY)

    return canceller, end()


async def _submit_first(
    stage: Stage, ender: Actor | WorkerActor, end: Coroutine[Any, Any, object]
) -> JobId:
    """Let a submission read its upstream, and commit after the end of that has begun."""
    submitter = await stage.actor()
    await submitter.begin()
    (down,) = await submitter.submit([_DOWN])
    ending = await stage.start(ender, end)
    await submitter.commit()
    await ending
    return down.run


async def _end_first(
    stage: Stage, ender: Actor | WorkerActor, end: Coroutine[Any, Any, object]
) -> JobId:
    """Let a submission begin while the end of its upstream is not committed yet."""
    submitter = await stage.actor()
    await ender.begin()
    await end
    submitting = await stage.start(submitter, submitter.submit([_DOWN]))
    await ender.commit()
    (down,) = await submitting
    return down.run


_anywhere = pytest.mark.parametrize("place", [_running, _waiting, _ready, _deferred, _unpropagated])
_either_way = pytest.mark.parametrize("order", [_submit_first, _end_first])


@_anywhere
@_either_way
async def test_downstream_is_queued_when_its_upstream_ends_during_its_submission(
    stage: Stage, place: Place, order: Order
) -> None:
    down = await order(stage, *await place(stage))
    assert await stage.count_stranded() == 0
    assert await stage.states(down) == {"down": "Queued"}


@_anywhere
@_either_way
async def test_downstream_is_stranded_when_its_submission_locks_no_upstream(
    stage: Stage, place: Place, order: Order
) -> None:
    await stage.without("upstream")
    down = await order(stage, *await place(stage))
    assert await stage.count_stranded() == 1
    assert await stage.states(down) == {"down": "Waiting/Upstream"}
