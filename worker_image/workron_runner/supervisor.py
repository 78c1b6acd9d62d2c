"""Ends attempts: their signals, timeouts, the agent's deadline, memory, and leftover processes.

An attempt runs until its command exits by itself or is killed. Killing is SIGTERM to the process
group, then SIGKILL after the grace. When the command has exited, the rest of its process group is
killed, the command is reaped, and the attempt is *ending*: every process with its tag or its uid is
killed. It has *ended*, and only then is reported, when no such process is left, or after five
seconds if one cannot be killed because it waits for a device.
"""

from __future__ import annotations

import signal
from collections.abc import Container
from math import inf
from typing import Final

from workron_runner import event_loop, memory, process_reaper
from workron_runner.attempt import AttemptProcess, EndCause
from workron_runner.memory import MemoryMonitor
from workron_runner.uids import UidPool

_UNKILLABLE_SECONDS: Final = 5
_MAX_REAP_ROUNDS: Final = 20
_ENDING_POLL_SECONDS: Final = 0.001
"""A killed process dies within microseconds, but not synchronously."""


class Supervisor:
    """All attempts from their start until they have ended."""

    def __init__(
        self,
        uids: UidPool | None = None,
        memory_monitor: MemoryMonitor | None = None,
        starting_tags: Container[int] = (),
    ) -> None:
        self._uids = uids
        self._memory = memory_monitor
        self._starting_tags = starting_tags
        self._by_claim: dict[str, AttemptProcess] = {}
        self._by_tag: dict[int, AttemptProcess] = {}
        self._ending: dict[AttemptProcess, float] = {}
        """Attempts whose command has exited, and until when their processes are waited for."""
        self._next_timer = inf
        """A lower bound of all timers, so that most checks need not read each of them."""
        self._deadline = inf

    def __len__(self) -> int:
        return len(self._by_claim)

    def get(self, claim: str) -> AttemptProcess | None:
        """Return the attempt of a claim, if it has not ended."""
        return self._by_claim.get(claim)

    def add(self, attempt: AttemptProcess, timeout: float | None) -> None:
        """Supervise a command that was just started."""
        self._by_claim[attempt.claim] = self._by_tag[attempt.tag] = attempt
        if timeout is not None:
            self._set_timer(attempt, event_loop.boottime() + timeout)

    def kill(self, attempt: AttemptProcess, grace: float, cause: EndCause = EndCause.KILL) -> None:
        """Begin to kill an attempt, or shorten the grace of one that is being killed."""
        if attempt in self._ending:
            # The command is reaped, so the id of its process group may have been reused.
            return
        attempt.cause = cause
        if attempt.is_terminated and grace > 0:
            self._set_timer(attempt, min(attempt.due_at, event_loop.boottime() + grace))
            return
        attempt.grace = grace
        attempt.is_terminated = False
        self._send_next_signal(attempt)

    def kill_all(self) -> None:
        """Kill every attempt without grace."""
        for attempt in self._running():
            self.kill(attempt, 0)

    def command_exited(self, attempt: AttemptProcess) -> bool:
        """Reap the command of an attempt, which is ending from then on; False if it still runs."""
        # Before it is reaped: until then the id of its process group cannot be reused.
        attempt.signal_group(signal.SIGKILL)
        if not attempt.reap():
            return False
        if self._memory is not None and attempt.cause is EndCause.EXIT:
            attempt.limit_bytes = self._memory.limit_of_kill(attempt.code)
            if attempt.limit_bytes is not None:
                attempt.cause = EndCause.MEMORY
        attempt.due_at = inf
        self._ending[attempt] = event_loop.boottime() + _UNKILLABLE_SECONDS
        return True

    def take_ended(self) -> list[AttemptProcess]:
        """Kill what ending attempts left, and return those of which nothing is left."""
        if not self._ending:
            return []
        with_uid_processes = [
            one for one in self._ending
            if self._uids is not None and (uid := one.workspace.uid) and self._uids.kill(uid)
        ]  # fmt: skip
        tags = self.kill_leftovers()
        now = event_loop.boottime()
        ended = [
            one
            for one, until in self._ending.items()
            if now > until or (one.tag not in tags and one not in with_uid_processes)
        ]
        for attempt in ended:
            del self._ending[attempt], self._by_claim[attempt.claim], self._by_tag[attempt.tag]
        return ended

    def set_deadline(self, at: float) -> None:
        """Kill what does not outlive the deadline at that time, instead of the previous one."""
        self._deadline = at
        # Checked now: a later deadline that follows must not undo one that has passed.
        self.check_timers()

    @property
    def is_past_deadline(self) -> bool:
        """Whether the deadline has passed."""
        return event_loop.boottime() >= self._deadline

    def check_timers(self) -> None:
        """Act on deadline, timeouts, graces and memory that are due."""
        if self.is_past_deadline:
            self._kill_past_deadline()
        now = event_loop.boottime()
        if now >= self._next_timer:
            for attempt in self._running():
                if attempt.due_at <= now and not attempt.has_exited:
                    if attempt.cause is EndCause.EXIT:
                        attempt.cause = EndCause.TIMEOUT
                    self._send_next_signal(attempt)
            self._next_timer = min((one.due_at for one in self._by_claim.values()), default=inf)
        if self._memory and self._by_claim and (limit := self._memory.check()):
            self._kill_largest(limit)

    def poll_timeout(self) -> float | None:
        """Return how long the event loop may wait until it has to call again."""
        if self._ending:
            return _ENDING_POLL_SECONDS
        if not self._by_claim and not process_reaper.has_leftover_processes():
            return None
        now = event_loop.boottime()
        timeouts = [event_loop.CHECK_INTERVAL_SECONDS, max(0.0, self._next_timer - now)]
        if self._memory and self._by_claim:
            timeouts.append(self._memory.seconds_until_check(now))
        if (until_deadline := self._deadline - now) > 0:
            timeouts.append(until_deadline)
        return min(timeouts)

    def kill_leftovers(self) -> set[int]:
        """Kill and reap leftover processes of no running attempt; the tags of those still alive."""
        tags: set[int] = set()
        for _ in range(_MAX_REAP_ROUNDS):
            if not process_reaper.has_leftover_processes():
                return set()
            tags, has_reaped = self._kill_leftovers_once()
            # The children of a reaped process are leftovers from now on: look again.
            if not has_reaped:
                break
        return tags

    def _kill_leftovers_once(self) -> tuple[set[int], bool]:
        tags: set[int] = set()
        has_reaped = False
        for pid, tag in process_reaper.leftover_processes():
            owner = self._by_tag.get(tag)
            is_of_running = owner is not None and owner not in self._ending
            is_allowed = is_of_running or tag in self._starting_tags
            peak = process_reaper.reap(pid) if is_allowed else process_reaper.kill_leftover(pid)
            if owner is not None:
                owner.peak_bytes = max(owner.peak_bytes, peak)
            if not is_allowed:
                has_reaped |= peak >= 0
                tags.add(tag)
        return tags, has_reaped

    def _kill_past_deadline(self) -> None:
        for attempt in self._running():
            is_spared = attempt.outlives_deadline or attempt.cause is EndCause.DEADLINE
            # A command that exited in time is not killed because this check is late.
            if not is_spared and not attempt.has_exited:
                self.kill(attempt, 0, EndCause.DEADLINE)

    def _kill_largest(self, limit: int) -> None:
        """Kill the attempt that uses most memory, unless one that was killed for it still runs."""
        if any(one.cause is EndCause.MEMORY for one in self._by_claim.values()):
            return
        if use := memory.largest_attempt(self._running()):
            attempt, resident = use
            attempt.peak_bytes = max(attempt.peak_bytes, resident)
            attempt.limit_bytes = limit
            self.kill(attempt, 0, EndCause.MEMORY)

    def _running(self) -> list[AttemptProcess]:
        return [one for one in self._by_claim.values() if one not in self._ending]

    def _set_timer(self, attempt: AttemptProcess, at: float) -> None:
        attempt.due_at = at
        self._next_timer = min(self._next_timer, at)

    def _send_next_signal(self, attempt: AttemptProcess) -> None:
        """Send SIGTERM or, after it and without grace, SIGKILL."""
        is_last = attempt.is_terminated or attempt.grace <= 0
        attempt.is_terminated |= not is_last
        attempt.signal_group(signal.SIGKILL if is_last else signal.SIGTERM)
        self._set_timer(attempt, inf if is_last else event_loop.boottime() + attempt.grace)
