"""The commands that run now: their clocks, their ends, and what they left running.

Called by `runner`. An attempt is over when its own command has ended and no process that bears its
mark is left; only then is it told.
"""

from __future__ import annotations

import signal
from math import inf
from typing import TYPE_CHECKING, Final

from workron_runner import event_loop, memory, process_reaper
from workron_runner.attempt import Because

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from workron_runner.attempt import Attempt
    from workron_runner.memory import MemoryWatch
    from workron_runner.uids import Uids


_UNKILLABLE_SECONDS: Final = 5
"""What a signal cannot end, because it waits for a device, holds up the report for so long."""
_ROUNDS: Final = 20
_LOOK_SECONDS: Final = 0.001
"""A killed process is dead in a moment, but not at once."""


class Supervisor:
    """All attempts, from their start until they are told of."""

    def __init__(
        self,
        uids: Uids | None = None,
        pressure: MemoryWatch | None = None,
        coming: Container[int] = (),
    ) -> None:
        self._coming = coming
        self._uids = uids
        self._pressure = pressure
        self._by_claim: dict[str, Attempt] = {}
        self._by_mark: dict[int, Attempt] = {}
        self._ending: dict[Attempt, float] = {}
        """Whose commands have ended, and until when what they left is waited for."""
        self._terms = event_loop.Timers()
        self._deadline = inf

    def __len__(self) -> int:
        return len(self._by_claim)

    @property
    def is_ending(self) -> bool:
        """Whether something has to be looked for again soon."""
        return bool(self._ending)

    def get(self, claim: str) -> Attempt | None:
        """Give the attempt of a claim, if it is not over."""
        return self._by_claim.get(claim)

    def enter(self, attempt: Attempt, timeout: float | None) -> None:
        """Take in a command that was just started."""
        self._by_claim[attempt.claim] = self._by_mark[attempt.mark] = attempt
        if timeout is not None:
            self._terms.set(attempt.term, event_loop.clock_now() + timeout)

    def kill(self, attempt: Attempt, grace: float, because: Because = Because.KILL) -> None:
        """Begin to end an attempt, or to end it quicker."""
        if attempt in self._ending:
            # It came to its own end, and the number of its group may be another's by now.
            return
        attempt.because = because
        if attempt.is_told and grace > 0:
            # It has heard TERM, and its time can only become shorter.
            self._terms.set(attempt.term, min(attempt.term.at, event_loop.clock_now() + grace))
            return
        attempt.grace = grace
        attempt.is_told = False
        self._step(attempt)

    def kill_all(self) -> None:
        """End every attempt at once."""
        for attempt in self._running():
            self.kill(attempt, 0)

    def look_after(self) -> None:
        """Take away what has died, and kill what belongs to nobody any more."""
        self._clear()

    def exited(self, attempt: Attempt) -> bool:
        """Whether its command has ended; then what shared its group is dead or about to be."""
        # Before its remains are taken away: until then the number of the group is its own.
        attempt.signal(signal.SIGKILL)
        if not attempt.reap():
            return False
        self._look_who_killed(attempt)
        attempt.term.at = inf
        self._ending[attempt] = event_loop.clock_now() + _UNKILLABLE_SECONDS
        return True

    def over(self) -> Iterable[Attempt]:
        """Kill what ended commands left, and give the attempts of which nothing is left."""
        held = [one for one in self._ending if self._has_company(one)]
        left = self._clear()
        now = event_loop.clock_now()
        done = [
            one
            for one, until in self._ending.items()
            if now > until or (one.mark not in left and one not in held)
        ]
        for attempt in done:
            del self._ending[attempt], self._by_claim[attempt.claim], self._by_mark[attempt.mark]
        return done

    def set_deadline(self, at: float) -> None:
        """Let everything run until then."""
        self._deadline = at
        # One that has passed already may be followed by a later one, but not be overtaken by it.
        self.look_at_clock()

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return event_loop.clock_now() >= self._deadline

    def look_at_clock(self) -> None:
        """Begin the ends whose moment has come."""
        if self.is_late:
            for attempt in self._running():
                is_spared = attempt.outlives_deadline or attempt.because is Because.DEADLINE
                # Who came to its own end in time is not blamed for a late look.
                if not is_spared and not attempt.has_ended:
                    self.kill(attempt, 0, Because.DEADLINE)
        moment = event_loop.clock_now()
        if self._terms.are_due(moment):
            for attempt in self._running():
                if attempt.term.at <= moment and not attempt.has_ended:
                    self._expire(attempt)
            self._terms.renew(one.term for one in self._by_claim.values())
        if self._pressure and self._by_claim and (limit := self._pressure.look()):
            self._relieve(limit)

    def patience(self) -> float | None:
        """Tell how long to wait at most until the next look."""
        if self._ending:
            return _LOOK_SECONDS
        if not self._by_claim and not process_reaper.can_find_strays():
            return None
        moment = event_loop.clock_now()
        until_deadline = self._deadline - moment
        rests = [event_loop.TICK_SECONDS, self._terms.left(moment)]
        if self._pressure and self._by_claim:
            rests.append(self._pressure.patience(moment))
        return min(rests + ([until_deadline] if until_deadline > 0 else []))

    def _relieve(self, limit: int) -> None:
        """Kill who uses most memory, unless one that was killed for it is still going."""
        if any(one.because is Because.MEMORY for one in self._by_claim.values()):
            return
        if use := memory.largest_attempt(self._running()):
            use.attempt.peak_bytes = max(use.attempt.peak_bytes, use.resident)
            use.attempt.limit_bytes = limit
            self.kill(use.attempt, 0, Because.MEMORY)

    def _look_who_killed(self, attempt: Attempt) -> None:
        if self._pressure is None or attempt.because is not Because.ITSELF:
            return
        if limit := self._pressure.has_ended(attempt.code):
            attempt.because = Because.MEMORY
            attempt.limit_bytes = limit

    def _has_company(self, attempt: Attempt) -> bool:
        """Kill what runs as its uid still; whether there was anything."""
        return self._uids is not None and attempt.uid is not None and self._uids.end(attempt.uid)

    def _running(self) -> list[Attempt]:
        return [one for one in self._by_claim.values() if one not in self._ending]

    def _expire(self, attempt: Attempt) -> None:
        if attempt.because is Because.ITSELF:
            attempt.because = Because.TIMEOUT
        self._step(attempt)

    def _step(self, attempt: Attempt) -> None:
        self._terms.set(attempt.term, event_loop.clock_now() + attempt.step())

    def _clear(self) -> set[int]:
        """Kill every stray whose attempt is over; the marks of those that are not dead yet."""
        left: set[int] = set()
        for _ in range(_ROUNDS):
            if not process_reaper.can_find_strays():
                return set()
            left, is_progress = self._look()
            # The children of one that has died are strays from now on: looked for at once.
            if not is_progress:
                break
        return left

    def _look(self) -> tuple[set[int], bool]:
        left: set[int] = set()
        is_progress = False
        for stray in process_reaper.find_strays():
            owner = self._by_mark.get(stray.mark)
            is_own = owner is not None and owner not in self._ending
            is_allowed = is_own or stray.mark in self._coming
            peak = process_reaper.reap(stray.pid) if is_allowed else process_reaper.end_stray(stray)
            if owner is not None:
                owner.peak_bytes = max(owner.peak_bytes, peak)
            if not is_allowed:
                is_progress |= peak >= 0
                left.add(stray.mark)
        return left, is_progress
