"""Carries what was seen into the store, some objects at once.

One bad object among many is found, and refused by itself. While the database is away everything
stays where it is, and the newest edition of each object is tried again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from workron.core import errors
from workron.store.api import OperatorStore, SubmitStore
from workron_controller.jobs import cache, object_parser
from workron_controller.jobs.cache import StatusReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from uuid import UUID

    from workron.core.plan import Plan
    from workron.store.types import OwnedRun
    from workron_controller.jobs.cache import ObjectCache
    from workron_controller.jobs.workqueue import QueuedObject, Workqueue


REFUSED: Final = "Refused"
_MOST: Final = 500
_MOST_BYTES: Final = 4 << 20
_MOST_ROWS: Final = 100_000
"""A page of YAML may be 200,000 jobs and ten times as many edges."""
_PAUSE_SECONDS: Final = 1.0

_log = structlog.get_logger(__name__)


class SubmitterStore(SubmitStore, OperatorStore, Protocol):
    """What of a store is needed here."""


class Submitter:
    """Takes from the inbox for as long as it runs."""

    def __init__(self, store: SubmitterStore, inbox: Workqueue, objects: ObjectCache) -> None:
        self._store = store
        self._inbox = inbox
        self._objects = objects

    async def run(self) -> None:
        """Go on for ever."""
        while True:
            some = await self._inbox.take(_MOST, _MOST_BYTES)
            try:
                await self.carry(some)
            except errors.TRANSIENT as away:
                self._inbox.put_back(some)
                _log.warning("store is away", waiting=len(self._inbox), error=str(away))
                await asyncio.sleep(_PAUSE_SECONDS)
            except errors.StoreError as trouble:
                # A full disk, a right that is missing: somebody has to act, and then it goes on.
                self._inbox.put_back(some)
                _log.exception("store refuses", waiting=len(self._inbox), error=str(trouble))
                await asyncio.sleep(_PAUSE_SECONDS)

    async def carry(self, some: Sequence[QueuedObject]) -> None:
        """Have the store know of all of them, or raise what keeps it from that."""
        known = await self._store.find_by_uid([news.uid for news in some])
        for news in some:
            if (owned := known.get(news.uid)) is not None:
                await self._renew_safely(news, owned)
        await self._submit([news for news in some if news.text and news.uid not in known])

    async def _renew_safely(self, news: QueuedObject, owned: OwnedRun) -> None:
        try:
            await self._renew(news, owned)
        except Exception as trouble:
            if _is_of_all(trouble):
                raise
            _log.exception("edition cannot be carried", **_named(owned))

    async def _renew(self, news: QueuedObject, owned: OwnedRun) -> None:
        """Bring a change to what is there, or the end of its object."""
        if news.text is None:
            if not owned.has_ended:
                await self._store.cancel(owned.run)
                _log.info("object is gone, so its job is cancelled", **_named(owned))
            return
        self._found(owned)
        raw = news.read()
        if owned.has_ended or cache.generation(raw) <= owned.generation:
            return
        try:
            wish = object_parser.parse_update(news.kind, raw)
        except object_parser.InvalidObjectError as refused:
            # The schema keeps such an edition out; who gets one past it changes nothing by that.
            _log.warning("edition is refused", message=str(refused), **_named(owned))
            return
        if (seen := self._objects.get(owned.uid)) is not None:
            seen.heard = wish.generation
        if await self._store.update_run(owned.run, wish):
            _log.info("object was edited", generation=wish.generation, **_named(owned))

    def _found(self, owned: OwnedRun) -> None:
        if (seen := self._objects.get(owned.uid)) is not None:
            seen.run, seen.heard, seen.refusal = owned.run, owned.generation, None

    async def _submit(self, some: Sequence[QueuedObject]) -> None:
        wanted = deque(self._wanted(some))
        plans = await asyncio.to_thread(_plans, wanted)
        good = [plan for plan in plans.values() if not isinstance(plan, StatusReason)]
        for uid, refusal in plans.items():
            if isinstance(refusal, StatusReason):
                self._refuse(uid, refusal)
        # Where they are many jobs the last of them may be most, and nobody is to wait for it.
        light = good[:-1] if wanted else good
        await self._store_some(light)
        await self._store_some(good[len(light) :])
        # And behind those that came meanwhile.
        self._inbox.put_back(wanted)
        for news in some:
            # It was stored, and has something to say beside that: that it is cancelled.
            if (seen := self._objects.get(news.uid)) is not None and seen.is_unheard:
                self._inbox.put_back([news])

    def _wanted(self, some: Sequence[QueuedObject]) -> list[QueuedObject]:
        """Leave out what has ended: the store that knew of it may be another one now."""
        return [
            news
            for news in some
            if (seen := self._objects.get(news.uid)) is not None and not seen.is_told_over
        ]

    async def _store_some(self, plans: Sequence[Plan]) -> None:
        """Store all, or find those that cannot be."""
        if not plans:
            return
        try:
            submitted = await self._store.submit(plans, supersedes=True)
        except Exception as trouble:
            if _is_of_all(trouble):
                raise
            if len(plans) == 1:
                self._refuse(plans[0].identity.uid, _refusal(trouble))
                return
            for part in _parts(plans, trouble):
                await self._store_some(part)
            return
        for plan, answer in zip(plans, submitted, strict=True):
            seen = self._objects.get(plan.identity.uid)
            if seen is not None:
                seen.run, seen.heard, seen.refusal = answer.run, plan.generation or 0, None

    def _refuse(self, uid: UUID, refusal: StatusReason) -> None:
        if (seen := self._objects.get(uid)) is None:
            return
        seen.refusal, seen.heard = refusal, seen.generation
        about = {"kind": seen.kind, "namespace": seen.namespace, "name": seen.name}
        _log.warning("object is refused", reason=refusal.reason, message=refusal.message, **about)


def _plans(wanted: deque[QueuedObject]) -> Mapping[UUID, Plan | StatusReason]:
    """Flatten what each asks for, until it is much; in a thread, since a large one takes long."""
    plans: dict[UUID, Plan | StatusReason] = {}
    room = _MOST_ROWS
    while wanted and room > 0:
        news = wanted.popleft()
        plans[news.uid] = plan = _plan(news)
        room -= 1 if isinstance(plan, StatusReason) else len(plan.nodes) + len(plan.edges)
    return plans


def _plan(news: QueuedObject) -> Plan | StatusReason:
    try:
        return object_parser.parse_plan(news.kind, news.read())
    except object_parser.InvalidObjectError as refused:
        return refused.refusal
    except Exception as surprise:  # noqa: BLE001 - it must not keep the others from being read
        _log.exception("object cannot be read", uid=str(news.uid))
        return StatusReason(REFUSED, f"it cannot be read: {surprise}")


def _is_of_all(trouble: Exception) -> bool:
    """Tell whether it is the store that is in trouble, and not one object that makes it."""
    is_of_one = isinstance(trouble, errors.StoreDataError)
    return isinstance(trouble, errors.StoreError) and not is_of_one


def _parts(plans: Sequence[Plan], trouble: Exception) -> Iterator[Sequence[Plan]]:
    """Give parts to be stored one by one, where all together were refused."""
    named = trouble.uids if isinstance(trouble, errors.CycleError) else frozenset()
    if suspects := [plan for plan in plans if plan.identity.uid in named]:
        # All others at once; of a cycle only what closes it is refused then.
        yield [plan for plan in plans if plan.identity.uid not in named]
        yield from ([plan] for plan in suspects)
    else:
        half = len(plans) // 2
        yield from (plans[:half], plans[half:])


def _refusal(trouble: Exception) -> StatusReason:
    if isinstance(trouble, errors.CycleError):
        return StatusReason("CycleDetected", str(trouble))
    if not isinstance(trouble, errors.WorkronError):
        _log.error("object cannot be stored", exc_info=trouble)
    return StatusReason(REFUSED, f"it cannot be stored: {trouble}")


def _named(owned: OwnedRun) -> dict[str, str]:
    return {"kind": owned.kind, "namespace": owned.namespace, "name": owned.name}
