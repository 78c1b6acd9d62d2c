"""A path through the graph as readable steps.

Snapshots are stored without the workers' names, so the path is searched again with names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.protocol import actions, wide
from tests.protocol.rules import Rules
from tests.protocol.state import Shared, State, Worker


def lines(path: Sequence[State], rules: Rules) -> Iterator[str]:
    """Return the path, one line per step."""
    now = path[0]
    for number, following in enumerate(path[1:], start=1):
        wanted = _anonymous(following)
        action, now = next(
            (action, after) for action, after in _steps(now, rules) if _anonymous(after) == wanted
        )
        yield f"{number:>3}. {action}"


def _steps(state: State, rules: Rules) -> Iterator[tuple[str, State]]:
    for index, worker in enumerate(state.workers):
        for step in actions.steps(state.shared, worker, rules):
            after = state._replace(shared=step.shared, workers=_with(state, index, step.worker))
            yield f"W{index + 1}: {step.action}", after
    for whole in wide.steps(state.shared, state.gap, rules):
        workers = state.workers
        if whole.change is not None:
            workers = tuple(wide.CHANGES[whole.change](worker, rules) for worker in workers)
        gap = state.gap if whole.gap is None else whole.gap
        yield whole.action, State(whole.shared, gap, workers)


def _with(state: State, index: int, worker: Worker) -> tuple[Worker, ...]:
    return (*state.workers[:index], worker, *state.workers[index + 1 :])


def _anonymous(state: State) -> tuple[Shared, int, list[str]]:
    return state.shared, state.gap, sorted(repr(worker) for worker in state.workers)
