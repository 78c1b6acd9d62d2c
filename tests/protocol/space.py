"""The graph of snapshots, in numbers: successors and verdicts.

A snapshot is one integer: its head, which is the number of its shared part and the maintainer's
gap, and the sorted numbers of its workers, so that snapshots that differ only in the workers' names
are the same. The steps of one worker depend on itself and the shared part only, so they are
computed once for each such pair; most of a search is then looking up numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.protocol import actions, invariants, wide
from tests.protocol.invariants import Invariant, Profile
from tests.protocol.rare_branches import RareBranch
from tests.protocol.rules import Rules
from tests.protocol.state import Job, Place, Shared, Stage, State, Worker
from tests.protocol.table import Memo, Table

_BITS = 24
_MASK = (1 << _BITS) - 1
_GAP_BITS = 4
_GAP_MASK = (1 << _GAP_BITS) - 1


class Move(NamedTuple):
    """A step of one worker, or a wide step, in numbers."""

    head: int
    worker: int
    """The number of that worker after it; not used by a wide step."""
    change: str | None
    is_fault: bool
    takes_time: bool
    broken: Invariant | None


class Space:
    """The graph under one set of rules; it grows during the search."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.marks: set[RareBranch] = set()
        self.shared: Table[Shared] = Table()
        self._workers: Table[Worker] = Table()
        self._jobs: Table[tuple[Job, ...]] = Table()
        self._profiles: Table[Profile] = Table()
        self._head_at = _BITS * rules.workers
        self._workers_at = range(self._head_at - _BITS, -1, -_BITS)
        self._moves = Memo(self._work_out_moves)
        self._wide = Memo(self._work_out_wide)
        self._changed = Memo(self._work_out_change)
        self._may_wait = Memo(self._work_out_waiting)
        self._judged = Memo(self._work_out_verdict)
        self._jobs_of = Memo(self._work_out_jobs)
        self._has_ended = Memo(self._work_out_ended)
        self._profile_of = Memo(self._work_out_profile)

    def key(self, state: State) -> int:
        numbers = [self._workers.number(worker) for worker in state.workers]
        return _packed(self._head(state.shared, state.gap), numbers)

    def state(self, key: int) -> State:
        head = key >> self._head_at
        workers = tuple(self._workers.values[number] for number in self._numbers(key))
        return State(self.shared.values[head >> _GAP_BITS], head & _GAP_MASK, workers)

    def edges(self, key: int) -> Iterator[tuple[int, Move]]:
        """All successors of a snapshot, each with the move that leads there."""
        head, numbers = key >> self._head_at, self._numbers(key)
        shared, gap = head >> _GAP_BITS, head & _GAP_MASK
        if not self._is_settled(shared, numbers):
            previous = -1
            for position, number in enumerate(numbers):
                # Equal workers have equal steps; one of them is enough.
                if number != previous:
                    rest = numbers[:position] + numbers[position + 1 :]
                    for move in self._moves[shared, number]:
                        yield _packed(move.head | gap, [*rest, move.worker]), move
                previous = number
        yield from self._wide_edges(head, numbers)

    def verdict(self, key: int) -> Invariant | None:
        """The invariant that this snapshot breaks, if any."""
        profiles = [self._profile_of[number] for number in self._numbers(key)]
        return self._judged[self._jobs_of[key >> self._head_at >> _GAP_BITS], *profiles]

    def is_done(self, key: int) -> bool:
        return self._has_ended[key >> self._head_at >> _GAP_BITS]

    def _numbers(self, key: int) -> list[int]:
        return [key >> at & _MASK for at in self._workers_at]

    def _is_settled(self, shared: int, numbers: Sequence[int]) -> bool:
        """Whether all jobs have ended and only a late cancel could change anything."""
        if not self._has_ended[shared] or self.shared.values[shared].standby is not None:
            return False
        workers = (self._workers.values[number] for number in numbers)
        return all(w.slot.stage is Stage.IDLE and not w.late for w in workers)

    def _wide_edges(self, head: int, numbers: Sequence[int]) -> Iterator[tuple[int, Move]]:
        is_up = self.shared.values[head >> _GAP_BITS].is_up
        may_wait = all(self._may_wait[is_up, number] for number in numbers)
        for move in self._wide[head]:
            if move.takes_time and not may_wait:
                continue
            after = list(numbers)
            if move.change is not None:
                after = [self._changed[move.change, number] for number in numbers]
            yield _packed(move.head, after), move

    def _head(self, shared: Shared, gap: int) -> int:
        return self.shared.number(shared) << _GAP_BITS | gap

    def _work_out_moves(self, pair: tuple[int, int]) -> list[Move]:
        before, worker = self.shared.values[pair[0]], self._workers.values[pair[1]]
        moves = []
        for step in actions.steps(before, worker, self.rules):
            self.marks.update(step.marks)
            broken = invariants.of_step(before, worker, step)
            after = self._head(step.shared, 0), self._workers.number(step.worker)
            moves.append(Move(*after, None, step.is_fault, takes_time=False, broken=broken))
        return moves

    def _work_out_wide(self, head: int) -> list[Move]:
        before, gap = self.shared.values[head >> _GAP_BITS], head & _GAP_MASK
        moves = []
        for step in wide.steps(before, gap, self.rules):
            self.marks.update(step.marks)
            broken = invariants.of_wide_step(before, step)
            after = self._head(step.shared, gap if step.gap is None else step.gap)
            moves.append(Move(after, -1, step.change, step.is_fault, step.takes_time, broken))
        return moves

    def _work_out_change(self, pair: tuple[str, int]) -> int:
        change, number = pair
        return self._workers.number(wide.CHANGES[change](self._workers.values[number], self.rules))

    def _work_out_waiting(self, pair: tuple[bool, int]) -> bool:
        is_up, number = pair
        return wide.may_wait(self._workers.values[number], self.rules, is_up=is_up)

    def _work_out_jobs(self, shared: int) -> int:
        return self._jobs.number(self.shared.values[shared].jobs)

    def _work_out_ended(self, shared: int) -> bool:
        return all(job.place is Place.DONE for job in self.shared.values[shared].jobs)

    def _work_out_profile(self, number: int) -> int:
        return self._profiles.number(invariants.profile(self._workers.values[number], self.rules))

    def _work_out_verdict(self, case: tuple[int, ...]) -> Invariant | None:
        jobs = self._jobs.values[case[0]]
        profiles = tuple(self._profiles.values[number] for number in case[1:])
        if invariants.overlaps(profiles):
            is_lost = any(one.is_orphaned for one in profiles)
            self.marks.add(RareBranch.OVERLAP_AFTER_LOSS if is_lost else RareBranch.OVERLAP)
        return invariants.of_state(jobs, profiles, self.rules)


def _packed(head: int, numbers: list[int]) -> int:
    numbers.sort()
    for number in numbers:
        head = head << _BITS | number
    return head
