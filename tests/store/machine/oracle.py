"""A model of a store in plain Python: no tables, no steps, every end propagated at once.

It is written from the protocol and the design, not from the SQL, so that the two cannot share a
mistake.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from tests.store.machine.job import Job, OracleWorker, Run
from workron.core.ids import ClaimId, JobId
from workron.core.plan import KINDS_WITH_DEADLINE, TASKS_OFFSET, Kind, Plan
from workron.core.states import Reason, State
from workron.store.types import (
    AttemptReport,
    ClaimedJob,
    DeleteRefusal,
    LossKind,
    Outcome,
    ReportResult,
    Signal,
)


class Oracle:
    """All jobs, and the effect of each method on them."""

    def __init__(self, workers: Sequence[OracleWorker]) -> None:
        self.workers = workers
        """The registered ones, in order of registration."""
        self.now = datetime.min.replace(tzinfo=UTC)
        self.jobs: dict[JobId, Job] = {}
        self.runs: list[Run] = []
        self.names: dict[tuple[Kind, str], Run] = {}
        self.outcomes: dict[ClaimId, ReportResult] = {}
        """The answers to reports on claims that are over."""

    def existing(self, plan: Plan) -> Run | None:
        """Find the run that this plan repeats."""
        for run in self.runs:
            if run.plan.identity.uid == plan.identity.uid:
                return run
        newest = self.unfinished(plan)
        return newest if newest and newest.plan.digest() == plan.digest() else None

    def unfinished(self, plan: Plan) -> Run | None:
        newest = self.names.get((plan.identity.kind, plan.identity.name))
        return newest if newest and not self.jobs[newest.id].is_over else None

    def closes_a_cycle(self, plan: Plan) -> bool:
        """Return whether the upstreams of this plan wait for its name, directly or not."""
        me = plan.identity.kind, plan.identity.name
        names = [(other.kind, other.name) for other in plan.external]
        todo = [self.names[name] for name in names if name in self.names and name != me]
        seen: set[Run] = set()
        while todo:
            run = todo.pop()
            seen.add(run)
            waiting = [job for job in self._of(run) if not job.is_over]
            names += [(kind, name) for job in waiting for kind, name, _ in job.missing]
            ups = {up.run for job in waiting for up, _ in job.upstreams if not up.is_over}
            todo += ups - seen
        return me in names

    def submit(self, plan: Plan, base: JobId) -> Run:
        run = Run(plan, base)
        self.runs.append(run)
        for offset, node in enumerate(plan.nodes):
            terms = plan.terms[node.spec]
            seconds = terms.deadline_seconds if node.kind in KINDS_WITH_DEADLINE else None
            deadline = None if seconds is None else self.now + timedelta(seconds=seconds)
            job = Job(JobId(base + offset), run, node, terms, deadline)
            job.is_suspended = plan.is_suspended and node.kind is Kind.JOB
            self.jobs[job.id] = job
        self._link(run)
        for job in self._of(run):
            self.resolve(job)
        return run

    def _link(self, run: Run) -> None:
        plan = run.plan
        named = plan.identity.kind, plan.identity.name
        self.names[named] = run
        mine = list(self._of(run))
        for edge in plan.edges:
            mine[edge.downstream].upstreams.append((mine[edge.upstream], edge.condition))
        for job in mine:
            if job.node.group_id is not None and job.node.group_condition is not None:
                mine[job.node.group_id].upstreams.append((job, job.node.group_condition))
        for other in plan.external:
            mine[other.downstream].missing.append((other.kind, other.name, other.condition))
        for job in self.jobs.values():
            for kind, name, condition in list(job.missing):
                if (bound := self.names.get((kind, name))) and (job in mine or bound is run):
                    job.missing.remove((kind, name, condition))
                    job.upstreams.append((self.jobs[bound.id], condition))

    def _of(self, run: Run) -> Iterable[Job]:
        return (self.jobs[JobId(run.id + i)] for i in range(len(run.plan.nodes)))

    def resolve(self, job: Job) -> None:
        """Resolve a job that waits for nothing more, and then its downstreams."""
        if (
            job.state is not State.WAITING
            or job.due
            or job.is_suspended
            or job.lost_by
            or job.missing
        ):
            return
        if not all(up.is_over for up, _ in job.upstreams):
            return
        state, reason = job.verdict()
        if state is not State.SUCCEEDED or job.node.kind is not Kind.JOB:
            self.end(job, state, reason)
        elif job.terms.start_after and job.terms.start_after > self.now:
            job.reason, job.due = Reason.SCHEDULED, job.terms.start_after
        else:
            job.state, job.reason = State.QUEUED, None

    def end(self, job: Job, state: State, reason: Reason | None = None) -> None:
        job.end(state, reason)
        for other in self.jobs.values():
            if any(up is job for up, _ in other.upstreams):
                self.resolve(other)

    def claimable(self, worker: OracleWorker, count: int) -> list[Job]:
        """List the jobs that a claim gets, in order."""
        ready = [
            job
            for job in self.jobs.values()
            if job.state is State.QUEUED and job.terms.pool == worker.pool
        ]
        ready.sort(key=lambda job: (-job.run.plan.priority, job.id))
        alone = [job for job in ready if job.is_alone]
        held = self.held(worker)
        if worker.is_draining or any(job.is_alone for job in held):
            return []
        if alone and not held:
            return alone[: min(count, 1)]
        if alone and self._is_reserved(worker, len(alone)):
            return []
        return [job for job in ready if not job.is_alone][:count]

    def _is_reserved(self, worker: OracleWorker, wanted: int) -> bool:
        """Return whether it is among the workers with the fewest claims, one per waiting job."""
        able = [
            one
            for one in self.workers
            if one.pool == worker.pool and not one.is_draining
            if not any(job.is_alone for job in self.held(one))
        ]
        able.sort(key=lambda one: len(self.held(one)))
        return worker in able[:wanted]

    def claim(self, worker: OracleWorker, claimed: ClaimedJob) -> None:
        job = self.jobs[claimed.job]
        assert job.state is State.QUEUED
        assert claimed.fence > job.fence
        job.state, job.reason = State.RUNNING, None
        job.attempts += 1
        job.fence, job.claim, job.worker = claimed.fence, claimed.claim, worker
        job.claims.append(claimed.claim)

    def held(self, worker: OracleWorker) -> list[Job]:
        return [job for job in self.jobs.values() if job.worker is worker]

    def answer(self, worker: OracleWorker, claim: ClaimId) -> ReportResult:
        """Return the answer to a report on a claim."""
        if any(job.claim == claim for job in self.held(worker)):
            return ReportResult.ACCEPTED
        return self.outcomes.get(claim, ReportResult.STALE)

    def complete(self, end: AttemptReport) -> None:
        job = self._drop(end.claim, ReportResult.ALREADY)
        signal = job.signal
        job.signal = None
        job.failures += end.outcome is not Outcome.SUCCEEDED
        if self._apply_signal(job, signal):
            return
        if end.outcome is Outcome.SUCCEEDED:
            self.end(job, State.SUCCEEDED)
        elif end.outcome is Outcome.FAILED:
            self.end(job, State.FAILED, end.reason)
        elif signal is Signal.SUSPEND:
            self._wait(job, is_suspended=True)
        else:
            job.state, job.reason = State.WAITING, Reason.BACKOFF
            job.due = self.now + timedelta(seconds=end.delay_seconds)

    def release(self, claim: ClaimId, lost: LossKind | None = None) -> None:
        job = self._drop(claim, ReportResult.ALREADY)
        signal, job.signal = job.signal, None
        job.losses += lost is LossKind.ALONE
        job.is_alone |= lost is LossKind.TOGETHER
        if self._apply_signal(job, signal):
            return
        if job.losses > job.terms.max_losses:
            self.end(job, State.FAILED, Reason.WORKER_LOST)
        else:
            self._wait(job, is_suspended=signal is Signal.SUSPEND)

    def reap(
        self, worker: OracleWorker, *, is_proven: bool, charge_losses: bool = True
    ) -> list[Job]:
        """Requeue all claims; return the jobs that failed by it."""
        lost = self.held(worker)
        for job in lost:
            assert job.claim is not None
            self._drop(job.claim, ReportResult.STALE)
        for job in lost:
            signal, job.signal = job.signal, None
            job.losses += charge_losses and len(lost) == 1
            job.is_alone |= charge_losses and len(lost) > 1
            if self._apply_signal(job, signal):
                continue
            if job.losses > job.terms.max_losses:
                self.end(job, State.FAILED, Reason.WORKER_LOST)
                continue
            job.lost_by = worker if job.terms.needs_proof and not is_proven else None
            self._wait(job, is_suspended=signal is Signal.SUSPEND)
        return [job for job in lost if job.state is State.FAILED]

    def prove(self, workers: Sequence[OracleWorker]) -> None:
        """Unblock jobs that wait for proof that these workers are dead."""
        for job in [job for job in self.jobs.values() if job.lost_by in workers]:
            job.lost_by = None
            self.resolve(job)

    def _drop(self, claim: ClaimId, answer: ReportResult) -> Job:
        self.outcomes[claim] = answer
        (job,) = (job for job in self.jobs.values() if job.claim == claim)
        job.claim = job.worker = None
        return job

    def _apply_signal(self, job: Job, signal: Signal | None) -> bool:
        if signal is Signal.CANCEL:
            self.end(job, State.CANCELLED)
        elif signal is Signal.EXPIRE:
            self.end(job, State.FAILED, Reason.DEADLINE_EXCEEDED)
        return signal in {Signal.CANCEL, Signal.EXPIRE}

    def _wait(self, job: Job, *, is_suspended: bool) -> None:
        job.state, job.reason, job.due = State.WAITING, Reason.UPSTREAM, None
        job.is_suspended = is_suspended
        self.resolve(job)

    def cancel(self, run: Run, *, force: bool = False) -> None:
        if self.jobs[run.id].is_over:
            return
        run.is_cancelled = True
        run.is_forced |= force
        for job in self._commands(run):
            if not job.is_cancelled:
                self._resume(job)
            elif job.state is State.RUNNING:
                job.signal = Signal.CANCEL
            elif not job.is_over:
                job.end(State.CANCELLED)
        for job in list(self.jobs.values()):
            self.resolve(job)

    def suspend(self, run: Run) -> None:
        if run.is_cancelled:
            return
        for job in self._commands(run):
            if job.state is State.RUNNING:
                job.signal = job.signal or Signal.SUSPEND
            elif not job.is_over:
                self._wait_suspended(job)

    def _wait_suspended(self, job: Job) -> None:
        job.is_suspended = True
        self._wait(job, is_suspended=True)

    def resume(self, run: Run) -> None:
        if not run.is_cancelled:
            for job in self._commands(run):
                self._resume(job)

    def _resume(self, job: Job) -> None:
        if job.signal is Signal.SUSPEND:
            job.signal = None
        if job.is_suspended:
            self._wait(job, is_suspended=False)

    def refuses_deletion(self, run: Run) -> DeleteRefusal | None:
        if not self.jobs[run.id].is_over:
            return DeleteRefusal.UNFINISHED
        is_needed = any(
            up is self.jobs[run.id]
            for job in self.jobs.values()
            if job.run is not run and not job.is_over
            for up, _ in job.upstreams
        )
        return DeleteRefusal.NEEDED if is_needed else None

    def delete(self, run: Run) -> None:
        for job in list(self._of(run)):
            self.outcomes |= dict.fromkeys(job.claims, ReportResult.STALE)
            del self.jobs[job.id]
        self.runs.remove(run)
        named = run.plan.identity.kind, run.plan.identity.name
        if self.names[named] is run:
            del self.names[named]

    def _commands(self, run: Run) -> Sequence[Job]:
        return [job for job in self._of(run) if job.node.kind is Kind.JOB]

    def promote(self) -> None:
        for job in self.jobs.values():
            if job.due and job.due <= self.now:
                job.state, job.reason, job.due = State.QUEUED, None, None

    def expire(self) -> bool:
        """End jobs past their deadline, and cancel such runs; return whether there were any."""
        due = [
            job
            for job in self.jobs.values()
            if not job.is_over and job.deadline and job.deadline <= self.now
        ]
        runs = [job.run for job in due if job.node.kind is Kind.WORKFLOW]
        runs = [run for run in runs if not run.is_cancelled and not self._have_tasks_ended(run)]
        for run in runs:
            run.is_expired = run.is_cancelled = True
        due = [job for job in due if job.node.kind is Kind.JOB]
        ended = [job for job in due if job.state is not State.RUNNING]
        # Together: the end of one does not skip another.
        for job in ended:
            job.end(State.FAILED, Reason.DEADLINE_EXCEEDED)
        for job in ended:
            self.end(job, State.FAILED, Reason.DEADLINE_EXCEEDED)
        for job in due:
            if job.state is State.RUNNING and job.signal is not Signal.CANCEL:
                job.signal = Signal.EXPIRE
        for run in runs:
            self.cancel(run)
        return bool(runs)

    def _have_tasks_ended(self, run: Run) -> bool:
        offset = 0 if run.plan.finally_from is None else TASKS_OFFSET
        return self.jobs[JobId(run.id + offset)].is_over
