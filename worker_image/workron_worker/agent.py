"""The agent: claims jobs of one pool, has them run, beats, and reports their ends.

Called by `workron.cli` with the worker's door of a store and an executor. One task exchanges ends
for claims with the store, one beats, and one listens for work; what becomes of each claim meanwhile
is in `attempts`. What they share is changed between awaits only.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import structlog

from workron.core import errors
from workron.core.jobspec import OnLeaseLost
from workron_worker import store_calls
from workron_worker.attempt import AttemptRunner, WorkerLog
from workron_worker.claims import ClaimExchange, ClaimLimit, Claims, Fate
from workron_worker.config import AgentConfig, AgentDependencies, accept_any_session
from workron_worker.heartbeat import Heartbeat
from workron_worker.store_calls import StoreRetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from workron.core.clock import Clock
    from workron.core.ids import ClaimId, SessionKey
    from workron.store.types import AttemptReport, ClaimedJob, Registration, Session
    from workron_worker.claims import HeartbeatActions, RunningClaim


class DrainPolicy:
    """Counts what was claimed, and how long there has been nothing to claim."""

    def __init__(self, clock: Clock, rhythm: AgentConfig) -> None:
        self._clock = clock
        self._left = rhythm.most_jobs
        self._longest_idle = rhythm.longest_idle
        self._idle_since: float | None = None

    def cap(self, free: int) -> int:
        """Say how many of the free slots may be filled."""
        return free if self._left is None else min(free, self._left)

    def reach(self, *, asked: int, granted: int, running: int) -> str | None:
        """Take in one exchange; if it was the last that asks for claims, name the limit met."""
        if self._left is not None:
            self._left -= granted
        is_idle = self._is_idle(is_busy=bool(granted or running), asked=asked)
        if self._left == 0:
            return "max_jobs"
        return "idle_exit" if is_idle else None

    @property
    def idle_left(self) -> float:
        """Seconds until nothing was found for too long; 0: it is so, or there is no such limit."""
        if self._longest_idle is None or self._idle_since is None:
            return 0.0
        over_at = self._idle_since + self._longest_idle.total_seconds()
        return max(0.0, over_at - self._clock.monotonic())

    def _is_idle(self, *, is_busy: bool, asked: int) -> bool:
        now = self._clock.monotonic()
        if is_busy:
            self._idle_since = None
        elif self._idle_since is None and asked:
            self._idle_since = now
        if self._longest_idle is None or self._idle_since is None or not asked:
            return False
        return now - self._idle_since >= self._longest_idle.total_seconds()


_log = structlog.get_logger(__name__)
_HURRY: Final = timedelta(seconds=2)
"""A killed agent waits no longer than this for a store that is away; the lease will do then. One
that drains and holds nothing waits half of it for the answer to what it has just asked."""
_GATHERING: Final = timedelta(milliseconds=5)
_SEVERAL: Final = 2
_MANY: Final = 64
"""What an exchange costs however many ends it has is little beside so many."""


class Agent:
    """One worker: one session at a time of one pool."""

    def __init__(
        self,
        around: AgentDependencies,
        registration: Registration,
        rhythm: AgentConfig | None = None,
        check: Callable[[Session], None] = accept_any_session,
    ) -> None:
        """Make one; `check` may refuse a session, before anything is done in it, by an error."""
        rhythm = rhythm or AgentConfig()
        self._check = check
        self._around = around
        self._registration = registration
        self._rhythm = rhythm
        self._ledger = Claims(around.rng)
        self._pulse = Heartbeat(around, rhythm, self._ledger, self)
        self._patience = StoreRetry(around.clock, rhythm.patience)
        self._exchange = ClaimExchange(around, self._ledger, self._patience)
        self._shift = DrainPolicy(around.clock, rhythm)
        self._appetite = ClaimLimit(registration.slots)
        self._journal = WorkerLog(registration)
        self._attempts = AttemptRunner(
            around, self._journal, self._patience, self._finish, lambda: self._pulse.is_late
        )
        self._wake = asyncio.Event()
        self._key: SessionKey | None = None
        self._is_draining = False
        self._is_killed = False

    async def run(self) -> None:
        """Work until drained; raises the store's errors that do not pass, and StartError."""
        try:
            async with asyncio.TaskGroup() as group:
                company = [
                    group.create_task(self._pulse.run()),
                    group.create_task(self._listen()),
                    group.create_task(self._report_beside()),
                    group.create_task(self._attempts.watch()),
                    group.create_task(self._around.executor.keep(self._wake.set)),
                ]
                try:
                    await self._work()
                finally:
                    await self._end_all()
                for task in company:
                    task.cancel()
        except BaseExceptionGroup as failed:
            cause = store_calls.first_error(failed)
            self._around.meter.gave_up(cause)
            held = self._ledger.count
            # Nothing runs any more, and no lease has to pass before that is known.
            if not await self._leave(cause) and self._is_killed:
                cause = store_calls.not_deregistered(cause, held)
            raise cause from failed
        await self._leave()

    @property
    def running(self) -> Sequence[ClaimedJob]:
        """Whose commands run."""
        return [running.claimed for running in self._ledger.running.values()]

    def drain(self) -> None:
        """Claim nothing any more; `run` returns when what runs has ended."""
        self._is_draining = True
        self._around.meter.draining()
        if self._ledger.is_empty:
            # What is asked for now would be for nothing.
            self._patience.cut(_HURRY / 2)
        self._wake.set()

    def kill(self) -> None:
        """Drain, but end what runs and hand it back."""
        self._is_killed = True
        self._patience.hurry(_HURRY)
        self._attempts.hurry()
        self._end(self._ledger.running, Fate.RELEASE)
        self.drain()

    def obey(self, orders: HeartbeatActions) -> None:
        """Do what the answer to a beat asks."""
        self._end(orders.drop, Fate.DROP)
        for claim in orders.kill:
            self._around.executor.kill(claim)
        if orders.release:
            self._ledger.hand_back(orders.release)
            self._wake.set()
        for claimed in self._ledger.beaten():
            self._journal.runs(claimed)

    def lose(self) -> None:
        """Stop everything: the store knows this session no more, and has its claims back."""
        if self._key is not None:
            self._around.meter.lost()
        self._key = None
        self._pulse.end()
        self._ledger.forget_all()
        self._end(self._ledger.running, Fate.DROP)
        self._wake.set()

    def cut_off(self) -> None:
        """Stop what must not outlive the lease; it is handed back as soon as the store answers."""
        ending = [
            claim
            for claim, running in self._ledger.running.items()
            if running.claimed.spec.body.get("onLeaseLost") != OnLeaseLost.CONTINUE
            and running.fate is Fate.REPORT
        ]
        if ending:
            _log.warning("commands are ended: the lease may be over", count=len(ending))
            self._around.meter.cut_off(len(ending))
            self._end(ending, Fate.RELEASE)

    def _end(self, claims: Iterable[ClaimId], fate: Fate) -> None:
        for claim in claims:
            running = self._ledger.running[claim]
            # What the store took back is never spoken of again, whatever else happens.
            if running.fate is not Fate.DROP:
                running.fate = fate
            self._around.executor.kill(claim)

    async def _end_all(self) -> None:
        """Return when nothing runs any more, whatever it is that ends this agent, and how often."""
        self._end(self._ledger.running, Fate.RELEASE)
        cancelled: asyncio.CancelledError | None = None
        while self._ledger.running:
            self._wake.clear()
            try:
                await self._wake.wait()
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def _listen(self) -> None:
        while True:
            await self._around.wait_for_work(self._rhythm.poll.total_seconds(), self._key)
            self._wake.set()

    async def _work(self) -> None:
        self._wake.set()
        while not (self._is_draining and self._ledger.is_empty):
            await self._wake.wait()
            self._wake.clear()
            await self._gather()
            try:
                await self._turn()
            except errors.TRANSIENT:
                if not (self._is_draining and self._ledger.is_empty):
                    raise
                # It only asked for more, and wants nothing any more.
                return

    @contextlib.contextmanager
    def _bearing_loss(self, key: SessionKey) -> Iterator[None]:
        """Lose the session if the store knows it no more; there may be another one by then."""
        try:
            yield
        except errors.SessionError as error:
            if key == self._key:
                _log.warning("worker was taken back", error=str(error))
                self.lose()

    async def _gather(self) -> None:
        """Wait a moment for more commands to end: an exchange costs the same for one as for many.

        Only while most still run, so that the machine is not idle meanwhile, and only where the
        last exchange had several: who runs a chain beside what takes long waits for nothing.
        """
        if self._exchange.told < _SEVERAL:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GATHERING.total_seconds()):
                while self._ledger.has_few_ends(_MANY):
                    await self._wake.wait()
                    self._wake.clear()

    async def _turn(self) -> None:
        if self._key is None:
            # Its first beat says that what older boots ran is dead: who is ready may say so.
            if self._ledger.running or not self._around.executor.is_ready:
                return
            await self._register()
        if self._key is not None:
            with self._bearing_loss(self._key):
                await self._trade(self._key)

    async def _trade(self, key: SessionKey) -> None:
        await self._exchange.hand_back(key)
        claims = self._ask()
        granted = await self._exchange.make(key, claims)
        self._look_up(asked=len(claims), granted=len(granted))
        if key == self._key:
            self._enter(key, granted)
        else:
            self._renounce(granted)

    async def _register(self) -> None:
        sent_at = self._around.clock.monotonic()
        door, registration = self._around.door, self._registration
        session = await self._patience.insist(lambda: door.register(registration))
        self._key = session.key
        self._check(session)
        self._pulse.begin(session, sent_at)
        self._journal.registered(session)

    async def _report_beside(self) -> None:
        while True:
            await self._exchange.plenty()
            if (key := self._key) is not None:
                with self._bearing_loss(key):
                    await self._exchange.report_beside(key)
                self._wake.set()

    def _look_up(self, *, asked: int, granted: int) -> None:
        """See what an exchange means for the next one."""
        if self._appetite.fed(asked=asked, granted=granted):
            self._wake.set()
        running = len(self._ledger.running)
        limit = self._shift.reach(asked=asked, granted=granted, running=running)
        if limit and not self._is_draining:
            self._journal.shift_over(limit)
            self.drain()
        elif 0 < (left := self._shift.idle_left) < self._rhythm.poll.total_seconds():
            asyncio.get_running_loop().call_later(left, self._wake.set)

    def _ask(self) -> Sequence[ClaimId]:
        if self._is_draining or self._pulse.is_late or not self._around.executor.is_ready:
            return ()
        free = self._around.slots.take(self._wake.set)
        wanted = self._shift.cap(free)
        asked = self._appetite.of(wanted)
        self._around.slots.give(free - asked)
        return self._ledger.ask(asked, self._around.clock.now())

    def _renounce(self, granted: Sequence[ClaimedJob]) -> None:
        """Leave alone what was granted to a session that has been lost meanwhile."""
        self._ledger.forget(claimed.claim for claimed in granted)
        self._around.slots.give(len(granted))

    def _enter(self, key: SessionKey, granted: Sequence[ClaimedJob]) -> None:
        """Have what was granted begun as soon as this task waits.

        That is when the next exchange, if there is to be one, is on its way: so agent and store
        work at the same time.
        """
        if granted:
            now = self._around.clock.monotonic()
            entered = [self._ledger.start(claimed, now) for claimed in granted]
            self._around.meter.began(len(entered))
            asyncio.get_running_loop().call_soon(self._begin, key, entered)

    def _begin(self, key: SessionKey, entered: Sequence[RunningClaim]) -> None:
        if self._is_killed or self._pulse.is_late:
            self._end([running.claimed.claim for running in entered], Fate.RELEASE)
        for running in entered:
            if running.fate is Fate.REPORT:
                self._attempts.begin(running, key)
            else:
                self._finish(running, None)

    def _finish(self, running: RunningClaim, end: AttemptReport | None) -> None:
        self._ledger.end(running, end)
        self._exchange.notice()
        self._around.meter.over()
        self._around.slots.give(1)
        self._wake.set()

    async def _leave(self, cause: BaseException | None = None) -> bool:
        key, door = self._key, self._around.door
        return key is None or await store_calls.deregister(
            door, key, self._registration.name, cause
        )
