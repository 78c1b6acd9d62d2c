"""The graph of snapshots, in numbers: which snapshots follow one, and is it sound.

A snapshot is one integer: the number of its shared part and the sorted numbers of its workers, so
that snapshots that differ only in the workers' names are the same. What one worker can do depends
on itself and the shared part only, so it is worked out once for each such pair; most of a search
is then looking up numbers.
"""

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from tests.protocol import actions, agent, invariants, sweeps
from tests.protocol.invariants import Invariant, Profile
from tests.protocol.rules import Rules
from tests.protocol.sometimes import Sometimes
from tests.protocol.state import Place, Shared, Stage, State, Worker

_BITS = 20
_MASK = (1 << _BITS) - 1

T = TypeVar("T")


class Table(Generic[T]):
    """Numbers for values: equal values have the same."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        found = self._numbers.setdefault(value, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found


class Move(NamedTuple):
    """A step or a sweep, in numbers; `worker` is None for a sweep."""

    shared: int
    worker: int | None
    change: str | None
    is_fault: bool
    takes_time: bool
    broken: Invariant | None


class Space:
    """The graph under one set of rules; it grows as it is walked."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.shared: Table[Shared] = Table()
        self.marks: set[Sometimes] = set()
        self._workers: Table[Worker] = Table()
        self._shared_at = _BITS * rules.workers
        self._workers_at = range(self._shared_at - _BITS, -1, -_BITS)
        self._moves: dict[tuple[int, int], list[Move]] = {}
        self._sweeps: dict[int, list[Move]] = {}
        self._changed: dict[tuple[str, int], int] = {}
        self._waiting: dict[tuple[bool, int], bool] = {}
        self._ended: dict[int, bool] = {}
        self._profiles: dict[int, Profile] = {}
        self._verdicts: dict[object, Invariant | None] = {}

    def key(self, state: State) -> int:
        numbers = [self._workers.number(worker) for worker in state.workers]
        return _packed(self.shared.number(state.shared), numbers)

    def state(self, key: int) -> State:
        shared, numbers = self._unpacked(key)
        workers = tuple(self._workers.values[number] for number in numbers)
        return State(self.shared.values[shared], workers)

    def edges(self, key: int) -> Iterator[tuple[int, Move]]:
        """All snapshots that may come next, each with the move that leads there."""
        shared, numbers = self._unpacked(key)
        if not self._is_settled(shared, numbers):
            previous = -1
            for position, number in enumerate(numbers):
                if number != previous:
                    rest = numbers[:position] + numbers[position + 1 :]
                    for move in self._moves_of(shared, number):
                        yield _packed(move.shared, [*rest, move.worker]), move
                previous = number
        yield from self._swept(shared, numbers)

    def verdict(self, key: int) -> Invariant | None:
        """Which invariant this snapshot breaks, if any."""
        shared, numbers = self._unpacked(key)
        jobs = self.shared.values[shared].jobs
        profiles = tuple(self._profile(number) for number in numbers)
        case = (jobs, profiles)
        if case not in self._verdicts:
            self._verdicts[case] = invariants.of_state(
                self.shared.values[shared], profiles, self.rules
            )
            self._mark_overlap(profiles)
        return self._verdicts[case]

    def is_done(self, key: int) -> bool:
        return self._has_ended(key >> self._shared_at)

    def _unpacked(self, key: int) -> tuple[int, list[int]]:
        return key >> self._shared_at, [key >> at & _MASK for at in self._workers_at]

    def _has_ended(self, shared: int) -> bool:
        found = self._ended.get(shared)
        if found is None:
            jobs = self.shared.values[shared].jobs
            found = self._ended[shared] = all(job.place is Place.DONE for job in jobs)
        return found

    def _is_settled(self, shared: int, numbers: Sequence[int]) -> bool:
        """Whether all has ended and nothing is left that could touch it, except a late cancel."""
        if not self._has_ended(shared) or self.shared.values[shared].standby is not None:
            return False
        workers = (self._workers.values[number] for number in numbers)
        return all(w.hand.stage is Stage.IDLE and not w.late for w in workers)

    def _swept(self, shared: int, numbers: Sequence[int]) -> Iterator[tuple[int, Move]]:
        for move in self._sweeps_of(shared):
            if move.takes_time and not all(self._may_wait(shared, n) for n in numbers):
                continue
            change = move.change
            if change is None:
                yield _packed(move.shared, list(numbers)), move
            else:
                yield _packed(move.shared, [self._change(change, n) for n in numbers]), move

    def _moves_of(self, shared: int, worker: int) -> list[Move]:
        found = self._moves.get((shared, worker))
        if found is None:
            found = self._moves[shared, worker] = list(self._new_moves(shared, worker))
        return found

    def _new_moves(self, shared: int, number: int) -> Iterator[Move]:
        before, worker = self.shared.values[shared], self._workers.values[number]
        for step in actions.steps(before, worker, self.rules):
            self.marks.update(step.marks)
            yield Move(
                self.shared.number(step.shared),
                self._workers.number(step.worker),
                None,
                step.is_fault,
                takes_time=False,
                broken=invariants.of_step(before, worker, step, self.rules),
            )

    def _sweeps_of(self, shared: int) -> list[Move]:
        found = self._sweeps.get(shared)
        if found is None:
            found = self._sweeps[shared] = list(self._new_sweeps(shared))
        return found

    def _new_sweeps(self, shared: int) -> Iterator[Move]:
        before = self.shared.values[shared]
        for sweep in sweeps.steps(before, self.rules):
            self.marks.update(sweep.marks)
            yield Move(
                self.shared.number(sweep.shared),
                None,
                sweep.change,
                sweep.is_fault,
                sweep.takes_time,
                invariants.of_sweep(before, sweep),
            )

    def _change(self, change: str, number: int) -> int:
        found = self._changed.get((change, number))
        if found is None:
            after = sweeps.CHANGES[change](self._workers.values[number], self.rules)
            found = self._changed[change, number] = self._workers.number(after)
        return found

    def _may_wait(self, shared: int, number: int) -> bool:
        value = self.shared.values[shared]
        found = self._waiting.get((value.is_up, number))
        if found is None:
            found = sweeps.may_wait(value, self._workers.values[number], self.rules)
            self._waiting[value.is_up, number] = found
        return found

    def _profile(self, number: int) -> Profile:
        found = self._profiles.get(number)
        if found is None:
            found = invariants.profile(self._workers.values[number], self.rules)
            self._profiles[number] = found
        return found

    def _mark_overlap(self, profiles: Sequence[Profile]) -> None:
        if invariants.overlaps(profiles):
            is_lost = any(one.is_orphaned for one in profiles)
            self.marks.add(Sometimes.OVERLAP_AFTER_LOSS if is_lost else Sometimes.OVERLAP)


def _packed(shared: int, numbers: list[int]) -> int:
    numbers.sort()
    for number in numbers:
        shared = shared << _BITS | number
    return shared
