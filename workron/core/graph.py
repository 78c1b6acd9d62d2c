"""Whether tasks form a DAG, and in which order they may run.

Called by `core.expand`, and so before anything of a workflow is stored. Every pass is linear in
tasks and edges and none recurses, so that a chain of 100,000 tasks is as welcome as a short one.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_SHOWN: Final = 12
"""A longer cycle is printed with its middle left out."""


def check(names: Sequence[str], upstreams: Sequence[Sequence[str]]) -> list[int]:
    """Give the positions of the tasks in topological order.

    Raises GraphError on a name that stands twice, on an upstream that is unknown, named twice or
    the task itself, and on a cycle, which it prints.
    """
    positions = _positions(names)
    found = [
        _resolve(at, named, names, positions) if named else () for at, named in enumerate(upstreams)
    ]
    return order(found, names)


def order(upstreams: Sequence[Sequence[int]], names: Sequence[str]) -> list[int]:
    """Do the same for upstreams given as positions; `names` are for the message only."""
    downstreams = _turned(upstreams)
    remaining = [len(found) for found in upstreams]
    sorted_ = [at for at, count in enumerate(remaining) if not count]
    # The list is its own queue: what becomes free is appended while the walk goes on.
    for at in sorted_:
        for downstream in downstreams[at]:
            remaining[downstream] -= 1
            if not remaining[downstream]:
                sorted_.append(downstream)
    if len(sorted_) < len(upstreams):
        cycle = _cycle(upstreams, remaining)
        raise errors.GraphError(_cycle_message(cycle, names), "tasks", cycle[0], "dependsOn")
    return sorted_


def _positions(names: Sequence[str]) -> Mapping[str, int]:
    positions = {name: at for at, name in enumerate(names)}
    if len(positions) < len(names):
        first, again = _twins(names)
        raise errors.GraphError(
            f"two tasks are named {names[again]!r}: tasks[{first}] and tasks[{again}];"
            " give one of them another name",
            *("tasks", again, "name"),
        )
    return positions


def _twins(names: Sequence[str]) -> tuple[int, int]:
    seen: dict[str, int] = {}
    return next(
        (first, at) for at, name in enumerate(names) if (first := seen.setdefault(name, at)) != at
    )


def _resolve(
    at: int, named: Sequence[str], names: Sequence[str], positions: Mapping[str, int]
) -> list[int]:
    found = [positions.get(name, -1) for name in named]
    if -1 in found or at in found or len(set(found)) < len(found):
        which, fault = _fault(at, named, positions)
        message = f"task {names[at]!r} (tasks[{at}]) {fault}"
        raise errors.GraphError(message, "tasks", at, "dependsOn", which)
    return found


def _fault(at: int, named: Sequence[str], positions: Mapping[str, int]) -> tuple[int, str]:
    for which, name in enumerate(named):
        if name not in positions:
            hint = _hint(name, positions)
            return which, f"depends on {name!r}, which is no task of this workflow{hint}"
        if positions[name] == at:
            return which, "depends on itself; no task can wait for its own end"
    which = next(which for which, name in enumerate(named) if name in named[:which])
    return which, f"names {named[which]!r} twice under dependsOn; name each upstream once"


def _hint(name: str, positions: Mapping[str, int]) -> str:
    nearest = difflib.get_close_matches(name, positions, n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def _turned(upstreams: Sequence[Sequence[int]]) -> list[list[int]]:
    downstreams: list[list[int]] = [[] for _ in upstreams]
    for at, found in enumerate(upstreams):
        for upstream in found:
            downstreams[upstream].append(at)
    return downstreams


def _cycle(upstreams: Sequence[Sequence[int]], remaining: Sequence[int]) -> list[int]:
    # What the sort left over is on a cycle or behind one, and always has an upstream that was
    # left over too: so walking upstream must come back to where it has been.
    at = next(at for at, count in enumerate(remaining) if count)
    seen: set[int] = set()
    while at not in seen:
        seen.add(at)
        at = next(upstream for upstream in upstreams[at] if remaining[upstream])
    return _shortest_through(at, upstreams)


def _shortest_through(goal: int, upstreams: Sequence[Sequence[int]]) -> list[int]:
    onward = {goal: goal}
    queue = [goal]
    for at in queue:
        for upstream in upstreams[at]:
            if upstream == goal:
                return _walk(goal, at, onward)
            if upstream not in onward:
                onward[upstream] = at
                queue.append(upstream)
    raise AssertionError("the goal was found on a cycle")


def _walk(goal: int, at: int, onward: Mapping[int, int]) -> list[int]:
    walk = [goal]
    while at != goal:
        walk.append(at)
        at = onward[at]
    return [*walk, goal]


def _cycle_message(cycle: Sequence[int], names: Sequence[str]) -> str:
    shown = [names[at] for at in cycle]
    if len(shown) > _SHOWN:
        half = _SHOWN // 2
        shown = [*shown[:half], f"({len(shown) - 2 * half} more)", *shown[-half:]]
    return (
        f"these tasks wait for each other in a circle: {' -> '.join(shown)};"
        " take one of these dependencies away"
    )
