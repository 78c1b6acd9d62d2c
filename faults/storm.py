"""Many workers, a stream of short jobs, and random faults for some minutes.

The faults are drawn from a seed, so that a storm can be repeated; their timing differs with the
load of the machine. A worker gets its next fault only after it has recovered.
"""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from faults import processes
from faults.harness import FaultHarness, Submission, now
from faults.polling import until
from faults.programs import Worker
from faults.storm_workflow import wave

WORKERS = 20
KILLS_A_MINUTE = 30
_SLOTS = 2
_LEASE_SECONDS = 4.0
_MAX_FREEZE_SECONDS = 2 * _LEASE_SECONDS
_BACKLOG = 300
"""With fewer unfinished jobs, more are submitted."""
_END_TIMEOUT_SECONDS = 180.0
_STEP_SECONDS = 0.1


def _yes() -> bool:
    return True


@dataclass
class _Target:
    """A worker, and the fault that it is recovering from."""

    worker: Worker
    has_recovered: Callable[[], bool] = _yes
    """Whether it has recovered from its last fault."""
    resumes_at: float = 0.0
    frozen: tuple[int, ...] = ()


_Fault = Callable[[_Target], bool]


class Storm:
    """One storm in one harness."""

    def __init__(self, harness: FaultHarness, seed: int) -> None:
        self._harness = harness
        self._rng = random.Random(seed)
        self._targets: list[_Target] = []
        self._submission: Submission | None = None
        self._waves = 0
        self.injected: Counter[str] = Counter()
        """How often each fault was injected."""
        self.unexpected_exits: list[str] = []
        """Workers that exited although no fault killed them."""

    def run(self, minutes: float) -> None:
        """Inject faults for some minutes, and wait until all jobs have ended."""
        for _ in range(2):
            self._harness.maintainer()
        self._targets = [_Target(self._start_worker()) for _ in range(WORKERS)]
        for target in self._targets:
            target.worker.await_runner()
        ends = now() + 60 * minutes
        plan = self._plan()
        at, fault = next(plan)
        while now() < ends:
            self._check_workers()
            self._feed()
            while at <= now():
                self._inject(fault)
                at, fault = next(plan)
            _await(now() + _STEP_SECONDS)
        self._finish()

    def _plan(self) -> Iterator[tuple[float, _Fault]]:
        """Draw faults and their times: kills at a fixed rate, and a milder fault after each."""
        kills = [self._kill_agent, self._kill_runner, self._kill_job]
        milder = [
            self._freeze_agent,
            self._freeze_runner,
            self._freeze_both,
            self._freeze_job,
            self._reset,
            self._silence,
        ]
        at = now()
        while True:
            for kinds in (kills, milder):
                at += 60 / KILLS_A_MINUTE / 2
                yield at, self._rng.choice(kinds)

    def _inject(self, fault: _Fault) -> None:
        """Inject a fault into the first suitable worker, beginning with a random one."""
        first = self._rng.randrange(WORKERS)
        for target in [*self._targets[first:], *self._targets[:first]]:
            if self._is_ready(target) and fault(target):
                self.injected[fault.__name__.strip("_").replace("_", " ")] += 1
                return

    def _is_ready(self, target: _Target) -> bool:
        return (
            not target.frozen
            and not target.resumes_at
            and target.worker.is_alive
            and target.has_recovered()
        )

    def _kill_agent(self, target: _Target) -> bool:
        target.worker.kill()
        target.worker.wait()
        self._replace(target)
        return True

    def _kill_runner(self, target: _Target) -> bool:
        runner = target.worker.runner()
        if runner is None:
            return False
        # It starts another runner for the next command, after the cleanup of the old one.
        target.has_recovered = lambda: bool(
            (new := target.worker.runner()) and new.pid != runner.pid and target.worker.commands()
        )
        return _signal(runner.pid, signal.SIGKILL)

    def _kill_job(self, target: _Target) -> bool:
        commands = target.worker.commands()
        return bool(commands) and _signal(self._rng.choice(commands).pid, signal.SIGKILL)

    def _freeze_agent(self, target: _Target) -> bool:
        return self._freeze(target, target.worker.pid)

    def _freeze_runner(self, target: _Target) -> bool:
        runner = target.worker.runner()
        return runner is not None and self._freeze(target, runner.pid)

    def _freeze_both(self, target: _Target) -> bool:
        runner = target.worker.runner()
        return runner is not None and self._freeze(target, target.worker.pid, runner.pid)

    def _freeze_job(self, target: _Target) -> bool:
        commands = target.worker.commands()
        return bool(commands) and self._freeze(target, *(one.pid for one in commands))

    def _freeze(self, target: _Target, *pids: int) -> bool:
        target.frozen = pids
        target.resumes_at = self._harness.freeze(target.worker, *pids) + self._draw_seconds()
        return True

    def _reset(self, target: _Target) -> bool:
        target.worker.proxy.reset()
        return True

    def _silence(self, target: _Target) -> bool:
        target.worker.proxy.silence()
        target.resumes_at = now() + self._draw_seconds()
        return True

    def _draw_seconds(self) -> float:
        return self._rng.uniform(0.1, _MAX_FREEZE_SECONDS)

    def _check_workers(self) -> None:
        """Resume frozen workers that are due, and replace workers that have exited."""
        for target in self._targets:
            if target.resumes_at and now() >= target.resumes_at:
                self._resume(target)
            if not target.worker.is_alive:
                self.unexpected_exits.append(f"{target.worker.name}:\n{target.worker.log_tail()}")
                self._replace(target)

    def _resume(self, target: _Target) -> None:
        if target.frozen:
            self._harness.thaw(target.worker, *target.frozen)
        else:
            target.worker.proxy.restore()
        target.frozen, target.resumes_at = (), 0.0

    def _start_worker(self, after: Worker | None = None) -> Worker:
        return self._harness.worker("--slots", _SLOTS, lease_seconds=_LEASE_SECONDS, after=after)

    def _replace(self, target: _Target) -> None:
        target.worker = self._start_worker(after=target.worker)
        # Without a runner an agent has no process for a fault.
        target.has_recovered = lambda: target.worker.runner() is not None

    def _feed(self) -> None:
        """Submit jobs while few are unfinished."""
        submission = self._submission
        if submission is not None and not submission.program.is_alive:
            self._harness.acknowledge(submission)
            self._submission = None
        if self._submission is None and self._harness.unfinished() < _BACKLOG:
            self._waves += 1
            self._submission = self._harness.begin_submission(f"wave-{self._waves}", **wave())

    def _finish(self) -> None:
        """Resume all workers, and wait until all acknowledged jobs have ended."""
        for target in self._targets:
            if target.resumes_at:
                self._resume(target)
        if self._submission is not None:
            self._harness.acknowledge(self._submission)
        self._harness.await_end(_END_TIMEOUT_SECONDS)
        self._check_workers()


def _await(moment: float) -> None:
    until(lambda: now() >= moment, "a step is over")


def _signal(pid: int, number: signal.Signals) -> bool:
    """Send a signal; False if the process is dead."""
    if not processes.is_alive(pid):
        return False
    os.kill(pid, number)
    return True


def report(storm: Storm, harness: FaultHarness, **facts: Any) -> list[str]:
    """Return lines about the injected faults and the findings of the checker."""
    executions = harness.executions()
    jobs = {one.job for one in executions}
    injected = ", ".join(f"{name} {count}" for name, count in sorted(storm.injected.items()))
    parameters = ", ".join(f"{name} {value}" for name, value in facts.items())
    return [
        f"storm: {parameters}, jobs {len(jobs)}, executions {len(executions)}",
        f"storm: {injected}",
        f"storm: {harness.check()}",
    ]
