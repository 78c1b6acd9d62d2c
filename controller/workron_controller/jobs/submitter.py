"""The submitter: takes objects from the workqueue and submits, updates or cancels their runs.

It works in batches. When the store rejects a batch, the submitter submits smaller parts until it
has found the object that is wrong, and rejects only that one. While the database is unreachable the
batch goes back to the queue, where the newest version of each object replaces it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

import structlog

from workron.core import errors
from workron.core.plan import Kind, Plan
from workron.store.api import Store
from workron.store.types import OwnedRun
from workron_controller.jobs import object_parser
from workron_controller.jobs.cache import ObjectCache
from workron_controller.jobs.workqueue import QueuedObject, Workqueue
from workron_controller.kube import resources
from workron_controller.kube.conditions import StatusReason

REJECTED: Final = "Rejected"
_MAX_OBJECTS: Final = 500
_MAX_BYTES: Final = 4 << 20
_MAX_ROWS: Final = 100_000
"""One manifest can be 200,000 jobs with ten times as many edges."""
_PAUSE_SECONDS: Final = 1.0

_log = structlog.get_logger(__name__)


class Submitter:
    """Submits what is in the workqueue; `max_rows` bounds the jobs and edges of one submission.

    `is_terminating` says whether a namespace is being deleted.
    """

    def __init__(
        self,
        store: Store,
        workqueue: Workqueue,
        objects: ObjectCache,
        is_terminating: Callable[[str], Awaitable[bool]],
        max_rows: int = _MAX_ROWS,
    ) -> None:
        self._store = store
        self._is_terminating = is_terminating
        self._workqueue = workqueue
        self._objects = objects
        self._max_rows = max_rows

    async def run(self) -> None:
        """Process batches until it is cancelled."""
        while True:
            batch = await self._workqueue.take(_MAX_OBJECTS, _MAX_BYTES)
            try:
                await self.process(batch)
            except errors.StoreError as error:
                # An error that does not pass, such as a full disk, goes on once it is repaired.
                self._workqueue.requeue(batch)
                is_transient = isinstance(error, errors.TRANSIENT)
                log = _log.warning if is_transient else _log.exception
                log("batch not submitted", queued=len(self._workqueue), error=str(error))
                await asyncio.sleep(_PAUSE_SECONDS)

    async def process(self, batch: Sequence[QueuedObject]) -> None:
        """Bring all objects into the store, or raise the StoreError that prevents it."""
        known = await self._store.find_by_uid([item.uid for item in batch])
        terminating = await self._terminating_namespaces(batch, known)
        for item in batch:
            if (owned := known.get(item.uid)) is None:
                continue
            try:
                if item.json is None:
                    await self._cancel(owned, force=owned.namespace in terminating)
                else:
                    await self._update(item, owned)
            except Exception as error:
                if _concerns_store(error):
                    raise
                _log.exception("run not updated", **_log_fields(owned))
        await self._submit_new([item for item in batch if item.json and item.uid not in known])

    async def _terminating_namespaces(
        self, batch: Sequence[QueuedObject], known: Mapping[UUID, OwnedRun]
    ) -> set[str]:
        """Return those namespaces of deleted Workflows that are being deleted themselves."""
        deleted = [known[item.uid] for item in batch if item.json is None and item.uid in known]
        namespaces = {
            owned.namespace
            for owned in deleted
            if owned.kind is Kind.WORKFLOW and not owned.has_ended
        }
        return {one for one in namespaces if await self._is_terminating(one)}

    async def _cancel(self, owned: OwnedRun, *, force: bool) -> None:
        """Cancel the run of a deleted object; no worker is left in a namespace that ends."""
        if not owned.has_ended:
            await self._store.cancel(owned.run, force=force)
            _log.info("run cancelled: its object was deleted", **_log_fields(owned))

    async def _update(self, item: QueuedObject, owned: OwnedRun) -> None:
        """Update the run of an object."""
        cached = self._objects.get(owned.uid)
        if cached is not None:
            cached.submitted(owned.run, owned.generation)
        raw = item.decode()
        if owned.has_ended or resources.generation_of(raw) <= owned.generation:
            return
        try:
            update = object_parser.parse_update(item.kind, raw)
        except object_parser.InvalidObjectError as error:
            # Only an object that bypassed the schema gets here; the run stays as it is.
            _log.warning("update rejected", message=str(error), **_log_fields(owned))
            return
        if cached is not None:
            cached.submitted(owned.run, update.generation)
        if await self._store.update_run(owned.run, update):
            _log.info("run updated", generation=update.generation, **_log_fields(owned))

    async def _submit_new(self, batch: Sequence[QueuedObject]) -> None:
        # Without finished objects: the store that ran them may have been replaced.
        unplanned = deque(
            item
            for item in batch
            if (cached := self._objects.get(item.uid)) is not None and not cached.is_finished
        )
        plans = await asyncio.to_thread(_plan_batch, unplanned, self._max_rows)
        valid = [plan for plan in plans.values() if not isinstance(plan, StatusReason)]
        for uid, reason in plans.items():
            if isinstance(reason, StatusReason):
                self._reject(uid, reason)
        # If the batch is full, its last plan may be most of it: the others do not wait for that.
        first = valid[:-1] if unplanned else valid
        await self._submit(first)
        await self._submit(valid[len(first) :])
        # The rest waits behind objects that were added meanwhile.
        self._workqueue.requeue(unplanned)
        for item in batch:
            # An object that is cancelled from the start needs its update, too.
            if (cached := self._objects.get(item.uid)) is not None and cached.needs_submit:
                self._workqueue.requeue([item])

    async def _submit(self, plans: Sequence[Plan]) -> None:
        """Submit all plans, or find and reject those that the store does not accept."""
        if not plans:
            return
        try:
            runs = await self._store.submit(plans, supersedes=True)
        except Exception as error:
            if _concerns_store(error):
                raise
            if len(plans) == 1:
                self._reject(plans[0].identity.uid, _rejection(error))
                return
            for part in _split(plans, error):
                await self._submit(part)
            return
        for plan, submitted in zip(plans, runs, strict=True):
            if (cached := self._objects.get(plan.identity.uid)) is not None:
                cached.submitted(submitted.run, plan.generation or 0)

    def _reject(self, uid: UUID, reason: StatusReason) -> None:
        if (cached := self._objects.get(uid)) is None:
            return
        cached.rejected(reason)
        _log.warning(
            "object rejected", reason=reason.reason, message=reason.message, **cached.log_fields
        )


def _plan_batch(unplanned: deque[QueuedObject], max_rows: int) -> dict[UUID, Plan | StatusReason]:
    """Plan objects until the batch is full; runs in a thread, as a large object takes long."""
    plans: dict[UUID, Plan | StatusReason] = {}
    rows_left = max_rows
    while unplanned and rows_left > 0:
        item = unplanned.popleft()
        plans[item.uid] = plan = _plan(item)
        rows_left -= 1 if isinstance(plan, StatusReason) else len(plan.nodes) + len(plan.edges)
    return plans


def _plan(item: QueuedObject) -> Plan | StatusReason:
    try:
        return object_parser.parse_plan(item.kind, item.decode())
    except object_parser.InvalidObjectError as error:
        return error.reason
    except Exception as error:  # noqa: BLE001 - one object must not stop the others
        _log.exception("object not parsed", uid=str(item.uid))
        return StatusReason(REJECTED, f"cannot read the object: {error}")


def _concerns_store(error: Exception) -> bool:
    """Distinguish an error of the store from one that a single object causes."""
    return isinstance(error, errors.StoreError) and not isinstance(error, errors.StoreDataError)


def _split(plans: Sequence[Plan], error: Exception) -> Iterator[Sequence[Plan]]:
    """Yield parts of a rejected batch that are submitted one after the other."""
    uids = error.uids if isinstance(error, errors.CycleError) else frozenset()
    if in_cycle := [plan for plan in plans if plan.identity.uid in uids]:
        # Each alone, so that only the object that closes the cycle is rejected.
        yield [plan for plan in plans if plan.identity.uid not in uids]
        yield from ([plan] for plan in in_cycle)
    else:
        half = len(plans) // 2
        yield from (plans[:half], plans[half:])


def _rejection(error: Exception) -> StatusReason:
    if isinstance(error, errors.CycleError):
        return StatusReason("CycleDetected", str(error))
    if not isinstance(error, errors.WorkronError):
        _log.error("object not stored", exc_info=error)
    return StatusReason(REJECTED, f"cannot store the object: {error}")


def _log_fields(owned: OwnedRun) -> dict[str, str]:
    return {"kind": owned.kind, "namespace": owned.namespace, "name": owned.name}
