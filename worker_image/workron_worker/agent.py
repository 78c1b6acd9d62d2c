"""The agent: claims jobs of one pool, has them run, sends heartbeats and reports their ends.

These tasks run at the same time; what they share is changed between awaits only.

    _work            reports ends and claims jobs, whenever woken (`claims.ClaimExchange`)
    heartbeat        proves life, and learns of signals and of a lost session (`heartbeat`)
    _listen          wakes `_work` when jobs become ready, or at the poll interval
    _report_many     reports many ends beside an exchange that is under way
    attempts.watch   raises errors of attempts that are the agent's own (`attempt`)
    keep_ready       waits for an external runner (`runner_client`)

`drain` ends it when what runs has ended; `kill` ends what runs and releases it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final

import structlog

from workron.core import errors
from workron.core.clock import Clock
from workron.core.ids import ClaimId, SessionKey
from workron.core.jobspec import OnLeaseLost
from workron.store.types import AttemptReport, ClaimedJob, HeartbeatReply, Registration, Session
from workron_worker.attempt import AttemptRunner, log_fields
from workron_worker.claims import (
    ClaimBatchSize,
    ClaimExchange,
    Claims,
    ClaimSnapshot,
    Disposition,
    RunningClaim,
    read_heartbeat,
)
from workron_worker.config import AgentConfig, AgentDependencies
from workron_worker.heartbeat import Heartbeat
from workron_worker.store_retry import StoreRetry

_log = structlog.get_logger(__name__)
_DEREGISTER_SECONDS: Final = 1.0
_DEREGISTER_SECONDS_AFTER_OUTAGE: Final = 0.25
_GATHER_TIMEOUT: Final = timedelta(milliseconds=5)
_SEVERAL_REPORTS: Final = 2
_FULL_BATCH: Final = 64
"""From this size on the fixed cost of a call does not matter."""


class DrainPolicy:
    """Decides when `max_jobs` or `idle_exit` makes the agent drain."""

    def __init__(self, clock: Clock, config: AgentConfig) -> None:
        self._clock = clock
        self._jobs_left = config.max_jobs
        self._idle_exit = config.idle_exit
        self._idle_since: float | None = None

    def limit(self, free: int) -> int:
        """Return how many of the free slots may be filled."""
        return free if self._jobs_left is None else min(free, self._jobs_left)

    def reached_limit(self, *, requested: int, granted: int, running: int) -> str | None:
        """Count an exchange; return the name of the limit that it has reached, if any."""
        if self._jobs_left is not None:
            self._jobs_left -= granted
        if granted or running:
            self._idle_since = None
        elif self._idle_since is None and requested:
            self._idle_since = self._clock.monotonic()
        if self._jobs_left == 0:
            return "max_jobs"
        return "idle_exit" if requested and self.seconds_until_idle_exit == 0 else None

    @property
    def seconds_until_idle_exit(self) -> float | None:
        """Seconds until the idle limit is reached; None without a limit, or while not idle."""
        if self._idle_exit is None or self._idle_since is None:
            return None
        exit_at = self._idle_since + self._idle_exit.total_seconds()
        return max(0.0, exit_at - self._clock.monotonic())


class Agent:
    """One worker, with one session of one pool at a time."""

    def __init__(
        self,
        dependencies: AgentDependencies,
        registration: Registration,
        config: AgentConfig | None = None,
        check: Callable[[Session], None] | None = None,
    ) -> None:
        """Create it; `check` may refuse a session by an error, before anything is claimed."""
        config = config or AgentConfig()
        self._check = check
        self._dependencies = dependencies
        self._registration = registration
        self._config = config
        self._claims = Claims(dependencies.rng)
        self._heartbeat = Heartbeat(dependencies, config, self._claims, self)
        self._retry = StoreRetry(dependencies.clock, config.store_timeout)
        self._exchange = ClaimExchange(dependencies, self._claims, self._retry)
        self._drain_policy = DrainPolicy(dependencies.clock, config)
        self._batch_size = ClaimBatchSize(registration.slots)
        self._log = _log.bind(worker=registration.name)
        self._attempts = AttemptRunner(
            dependencies,
            registration.name,
            self._retry,
            self._finish,
            lambda: self._heartbeat.is_late,
            config.max_start_failures,
        )
        self._wake = asyncio.Event()
        self._session: Session | None = None
        self._is_draining = False
        self._is_killed = False

    async def run(self) -> None:
        """Work until drained; raises StartError and errors of the store that are not transient."""
        try:
            async with asyncio.TaskGroup() as group:
                background = [
                    group.create_task(self._heartbeat.run()),
                    group.create_task(self._listen()),
                    group.create_task(self._report_many()),
                    group.create_task(self._attempts.watch()),
                    group.create_task(self._dependencies.executor.keep_ready(self._wake.set)),
                ]
                try:
                    await self._work()
                finally:
                    await self._kill_and_wait()
                for task in background:
                    task.cancel()
        except BaseExceptionGroup as failed:
            cause: BaseException = failed
            # One error of several that have the same cause: the group helps no user.
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            self._dependencies.metrics.agent_failed(cause)
            claims = self._claims.count
            is_outage = isinstance(cause, errors.TRANSIENT)
            # Nothing runs any more: no lease has to expire before the store knows that.
            if not await self._deregister(cause) and self._is_killed and is_outage:
                jobs = "1 job" if claims == 1 else f"{claims} jobs"
                message = f"the store requeues {jobs} of this worker when its lease expires"
                cause = type(cause)(f"{cause}; {message}")
            raise cause from failed
        await self._deregister()

    @property
    def running(self) -> Sequence[ClaimedJob]:
        """The jobs whose commands run."""
        return [running.job for running in self._claims.running.values()]

    def drain(self) -> None:
        """Claim nothing any more; `run` returns when what runs has ended."""
        self._is_draining = True
        self._dependencies.metrics.is_draining = True
        if not self._claims.count:
            # The call that is under way asks for claims that would be released again.
            self._retry.shorten_current_calls(self._config.kill_store_timeout / 2)
        self._wake.set()

    def kill(self) -> None:
        """Drain, but kill what runs and release it."""
        self._is_killed = True
        self._retry.stop_within(self._config.kill_store_timeout)
        self._kill_commands(self._claims.running, Disposition.RELEASE)
        self.drain()

    def apply_heartbeat(self, reply: HeartbeatReply, before: ClaimSnapshot) -> None:
        """Do what the answer to a heartbeat asks for; `before` are the claims when it was sent."""
        actions = read_heartbeat(reply, before, self._claims.snapshot())
        self._kill_commands(actions.drop, Disposition.DROP)
        for claim in actions.kill:
            self._dependencies.executor.kill(claim)
        if actions.release:
            self._claims.release_unknown(actions.release)
            self._wake.set()
        for job in self._claims.count_heartbeat():
            self._log.info("attempt running", **log_fields(job))
        if reply.is_draining:
            self.drain()

    @property
    def _key(self) -> SessionKey | None:
        return self._session.key if self._session else None

    def session_lost(self) -> None:
        """Stop everything: the store has reaped this session and its claims."""
        if self._session is not None:
            self._dependencies.metrics.session_lost()
        self._session = None
        self._heartbeat.end()
        self._claims.forget_all()
        self._kill_commands(self._claims.running, Disposition.DROP)
        self._wake.set()

    def lease_may_have_expired(self) -> None:
        """Kill what must not outlive the lease; released as soon as the store answers."""
        ending = [
            claim
            for claim, running in self._claims.running.items()
            if running.job.spec.body.get("onLeaseLost") != OnLeaseLost.CONTINUE
            and running.disposition is Disposition.REPORT
        ]
        if ending:
            _log.warning("lease may have expired, killing commands", count=len(ending))
            self._dependencies.metrics.lease_kills += len(ending)
            self._kill_commands(ending, Disposition.RELEASE)

    def _kill_commands(self, claims: Iterable[ClaimId], disposition: Disposition) -> None:
        for claim in claims:
            running = self._claims.running[claim]
            # A reaped claim is never reported, whatever else happens.
            if running.disposition is not Disposition.DROP:
                running.disposition = disposition
            self._dependencies.executor.kill(claim)

    async def _kill_and_wait(self) -> None:
        """Return when nothing runs any more, however often this task is cancelled meanwhile."""
        self._kill_commands(self._claims.running, Disposition.RELEASE)
        cancelled: asyncio.CancelledError | None = None
        while self._claims.running:
            self._wake.clear()
            try:
                await self._wake.wait()
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def _listen(self) -> None:
        while True:
            seconds = self._config.poll.total_seconds()
            await self._dependencies.store.wait_for_work(seconds, self._key)
            self._wake.set()

    async def _work(self) -> None:
        self._wake.set()
        while self._claims.count or not self._is_draining:
            await self._wake.wait()
            self._wake.clear()
            await self._gather_reports()
            try:
                await self._work_once()
            except errors.TRANSIENT:
                if self._claims.count or not self._is_draining:
                    raise
                # The call only asked for claims, and nothing is wanted any more.
                return

    @contextlib.contextmanager
    def _handling_session_loss(self, key: SessionKey) -> Iterator[None]:
        """Handle the loss of this session; a newer one may exist by then."""
        try:
            yield
        except errors.SessionError as error:
            if key == self._key:
                _log.warning("session lost", error=str(error))
                self.session_lost()

    async def _gather_reports(self) -> None:
        """Wait a moment for more commands to end: a call costs the same for one as for many.

        Only while most still run, so that the machine is not idle meanwhile, and only if the last
        call had several reports: a chain of jobs beside long ones waits for nothing.
        """
        if self._exchange.last_report_count < _SEVERAL_REPORTS:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GATHER_TIMEOUT.total_seconds()):
                while self._claims.has_few_unsent(_FULL_BATCH):
                    await self._wake.wait()
                    self._wake.clear()

    async def _work_once(self) -> None:
        if self._key is None:
            # The first heartbeat of a session proves that older sessions of this name are dead:
            # only an agent without running commands may say so.
            if self._claims.running or not self._dependencies.executor.is_ready:
                return
            await self._register()
        if (session := self._session) is None:
            return
        key = session.key
        with self._handling_session_loss(key):
            await self._exchange.release(key)
            claims = self._request_claims()
            granted = await self._exchange.exchange(key, claims)
            self._adjust(requested=len(claims), granted=len(granted))
            if key == self._key:
                self._begin_soon(session, granted)
            else:
                # The session that these were granted to has been lost meanwhile.
                self._claims.forget(job.claim for job in granted)
                self._dependencies.slots.give_back(len(granted))

    async def _register(self) -> None:
        sent_at = self._dependencies.clock.monotonic()
        store, registration = self._dependencies.store, self._registration
        session = await self._retry.call(lambda: store.register(registration))
        self._session = session
        if self._check is not None:
            self._check(session)
        self._heartbeat.begin(session, sent_at)
        self._log.info(
            "worker registered",
            pool=f"{session.namespace}/{session.pool}",
            slots=registration.slots,
            lease_seconds=session.lease_seconds,
        )

    async def _report_many(self) -> None:
        while True:
            await self._exchange.wait_for_many_reports()
            if (key := self._key) is not None:
                with self._handling_session_loss(key):
                    await self._exchange.report_in_parallel(key)
                self._wake.set()

    def _adjust(self, *, requested: int, granted: int) -> None:
        """Learn from an exchange for the next one."""
        if self._batch_size.adjust(requested=requested, granted=granted):
            self._wake.set()
        limit = self._drain_policy.reached_limit(
            requested=requested, granted=granted, running=len(self._claims.running)
        )
        if limit and not self._is_draining:
            self._log.info("limit reached, draining", limit=limit)
            self.drain()
            return
        left = self._drain_policy.seconds_until_idle_exit
        if left and left < self._config.poll.total_seconds():
            asyncio.get_running_loop().call_later(left, self._wake.set)

    def _request_claims(self) -> Sequence[ClaimId]:
        dependencies = self._dependencies
        if self._is_draining or self._heartbeat.is_late or not dependencies.executor.is_ready:
            return ()
        free = dependencies.slots.take_all(self._wake.set)
        requested = self._batch_size.limit(self._drain_policy.limit(free))
        dependencies.slots.give_back(free - requested)
        return self._claims.request(requested, dependencies.clock.now())

    def _begin_soon(self, session: Session, granted: Sequence[ClaimedJob]) -> None:
        """Begin attempts as soon as this task waits.

        By then the next exchange, if there is one, is under way, so that agent and store work at
        the same time.
        """
        if granted:
            now = self._dependencies.clock.monotonic()
            started = [self._claims.start(job, now) for job in granted]
            self._dependencies.metrics.running += len(started)
            asyncio.get_running_loop().call_soon(self._begin, session, started)

    def _begin(self, session: Session, started: Sequence[RunningClaim]) -> None:
        if self._is_killed or self._heartbeat.is_late:
            self._kill_commands([running.job.claim for running in started], Disposition.RELEASE)
        for running in started:
            if running.disposition is Disposition.REPORT:
                self._attempts.begin(running, session)
            else:
                self._finish(running, None)

    def _finish(self, running: RunningClaim, report: AttemptReport | None) -> None:
        self._claims.end(running, report)
        self._exchange.report_added()
        self._dependencies.metrics.running -= 1
        self._dependencies.slots.give_back(1)
        self._wake.set()

    async def _deregister(self, cause: BaseException | None = None) -> bool:
        """End the session, if there is one, without retries; whether the store has answered.

        `cause` is the error that ended the agent, if any.
        """
        if self._key is None:
            return True
        is_outage = isinstance(cause, errors.TRANSIENT)
        seconds = _DEREGISTER_SECONDS_AFTER_OUTAGE if is_outage else _DEREGISTER_SECONDS
        try:
            async with asyncio.timeout(seconds):
                await self._dependencies.store.deregister(self._key)
        except (errors.StoreError, TimeoutError) as error:
            if cause is None:
                reason = str(error) or "no answer in time"
                self._log.info("deregistration failed; the lease will expire", error=reason)
            return False
        return True
