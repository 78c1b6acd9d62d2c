"""Many workers, a flow of short jobs, and one fault after another at random until time is up.

What is done is drawn from a seed, so that a storm can be had again; what it meets is not quite the
same, as the machine is not. A worker that was hit is left alone until it has come round.
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
_LONGEST_FREEZE_SECONDS = 2 * _LEASE_SECONDS
_BACKLOG = 300
"""With fewer jobs that have not ended, more are submitted."""
_END_SECONDS = 180.0
_STEP_SECONDS = 0.1


def _yes() -> bool:
    return True


@dataclass
class _Seat:
    """A worker, and what it still suffers from."""

    worker: Worker
    is_round: Callable[[], bool] = _yes
    """Whether it has come round from what hit it last."""
    wakes_at: float = 0.0
    frozen: tuple[int, ...] = ()


_Fault = Callable[[_Seat], bool]


class Storm:
    """One storm in one harness."""

    def __init__(self, harness: FaultHarness, seed: int) -> None:
        self._house = harness
        self._rng = random.Random(seed)
        self._seats: list[_Seat] = []
        self._submission: Submission | None = None
        self._waves = 0
        self.hits: Counter[str] = Counter()
        """How often each fault was inflicted."""
        self.deserters: list[str] = []
        """Workers that ended though nobody killed them."""

    def run(self, minutes: float) -> None:
        """Let it rage, and then let everything come to its end."""
        for _ in range(2):
            self._house.maintainer()
        self._seats = [_Seat(self._hire()) for _ in range(WORKERS)]
        for seat in self._seats:
            seat.worker.await_runner()
        ends = now() + 60 * minutes
        plan = self._plan()
        at, fault = next(plan)
        while now() < ends:
            self._look_after()
            self._feed()
            while at <= now():
                self._strike(fault)
                at, fault = next(plan)
            _await(now() + _STEP_SECONDS)
        self._calm()

    def _plan(self) -> Iterator[tuple[float, _Fault]]:
        """Draw what is done, and when: so many kills a minute, and a milder fault after each."""
        kills = [self._kill_agent, self._kill_runner, self._kill_job]
        milder = [
            self._freeze_agent,
            self._freeze_runner,
            self._freeze_both,
            self._freeze_job,
            self._cut,
            self._silence,
        ]
        at = now()
        while True:
            for kinds in (kills, milder):
                at += 60 / KILLS_A_MINUTE / 2
                yield at, self._rng.choice(kinds)

    def _strike(self, fault: _Fault) -> None:
        """Inflict a fault on the first worker, from one drawn, that it can be inflicted on."""
        first = self._rng.randrange(WORKERS)
        for seat in [*self._seats[first:], *self._seats[:first]]:
            if self._is_well(seat) and fault(seat):
                self.hits[fault.__name__.strip("_").replace("_", " ")] += 1
                return

    def _is_well(self, seat: _Seat) -> bool:
        return not seat.frozen and not seat.wakes_at and seat.worker.is_alive and seat.is_round()

    def _kill_agent(self, seat: _Seat) -> bool:
        seat.worker.kill()
        seat.worker.wait()
        self._replace(seat)
        return True

    def _kill_runner(self, seat: _Seat) -> bool:
        runner = seat.worker.runner()
        if runner is None:
            return False
        # It starts another one for the next command, when nothing of the old one's is left.
        seat.is_round = lambda: bool(
            (new := seat.worker.runner()) and new.pid != runner.pid and seat.worker.commands()
        )
        return _signal(runner.pid, signal.SIGKILL)

    def _kill_job(self, seat: _Seat) -> bool:
        commands = seat.worker.commands()
        return bool(commands) and _signal(self._rng.choice(commands).pid, signal.SIGKILL)

    def _freeze_agent(self, seat: _Seat) -> bool:
        return self._freeze(seat, seat.worker.pid)

    def _freeze_runner(self, seat: _Seat) -> bool:
        runner = seat.worker.runner()
        return runner is not None and self._freeze(seat, runner.pid)

    def _freeze_both(self, seat: _Seat) -> bool:
        runner = seat.worker.runner()
        return runner is not None and self._freeze(seat, seat.worker.pid, runner.pid)

    def _freeze_job(self, seat: _Seat) -> bool:
        commands = seat.worker.commands()
        return bool(commands) and self._freeze(seat, *(one.pid for one in commands))

    def _freeze(self, seat: _Seat, *pids: int) -> bool:
        seat.frozen = pids
        seat.wakes_at = self._house.freeze(seat.worker, *pids) + self._draw_seconds()
        return True

    def _cut(self, seat: _Seat) -> bool:
        seat.worker.proxy.cut()
        return True

    def _silence(self, seat: _Seat) -> bool:
        seat.worker.proxy.silence()
        seat.wakes_at = now() + self._draw_seconds()
        return True

    def _draw_seconds(self) -> float:
        return self._rng.uniform(0.1, _LONGEST_FREEZE_SECONDS)

    def _look_after(self) -> None:
        """Wake who has slept enough, and take note of who has left."""
        for seat in self._seats:
            if seat.wakes_at and now() >= seat.wakes_at:
                self._wake(seat)
            if not seat.worker.is_alive:
                self.deserters.append(f"{seat.worker.name}:\n{seat.worker.said()}")
                self._replace(seat)

    def _wake(self, seat: _Seat) -> None:
        if seat.frozen:
            self._house.thaw(seat.worker, *seat.frozen)
        else:
            seat.worker.proxy.restore()
        seat.frozen, seat.wakes_at = (), 0.0

    def _hire(self, after: Worker | None = None) -> Worker:
        return self._house.worker("--slots", _SLOTS, lease_seconds=_LEASE_SECONDS, after=after)

    def _replace(self, seat: _Seat) -> None:
        seat.worker = self._hire(after=seat.worker)
        # An agent that has no runner yet has nothing that could be hit.
        seat.is_round = lambda: seat.worker.runner() is not None

    def _feed(self) -> None:
        """See to it that there are always jobs to be run."""
        given = self._submission
        if given is not None and not given.program.is_alive:
            self._house.acknowledge(given)
            self._submission = None
        if self._submission is None and self._house.unfinished() < _BACKLOG:
            self._waves += 1
            self._submission = self._house.begin_submission(f"wave-{self._waves}", **wave())

    def _calm(self) -> None:
        """Wake everybody, and wait until all that was acknowledged has ended."""
        for seat in self._seats:
            if seat.wakes_at:
                self._wake(seat)
        if self._submission is not None:
            self._house.acknowledge(self._submission)
        self._house.await_end(_END_SECONDS)
        self._look_after()


def _await(moment: float) -> None:
    until(lambda: now() >= moment, "a step is over")


def _signal(pid: int, number: signal.Signals) -> bool:
    """Send a signal; False if there is nobody any more."""
    if not processes.is_alive(pid):
        return False
    os.kill(pid, number)
    return True


def report(storm: Storm, harness: FaultHarness, **facts: Any) -> list[str]:
    """Say what was inflicted, and what the checker found."""
    executions = harness.executions()
    jobs = {one.job for one in executions}
    hits = ", ".join(f"{name} {count}" for name, count in sorted(storm.hits.items()))
    told = ", ".join(f"{name} {value}" for name, value in facts.items())
    return [
        f"storm: {told}, jobs {len(jobs)}, executions {len(executions)}",
        f"storm: {hits}",
        f"storm: {harness.check()}",
    ]
