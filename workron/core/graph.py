"""Check that tasks form a DAG, and sort them topologically.

Every pass is linear in tasks and edges and none recurses, so a chain can have 100,000 tasks.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_SHOWN: Final = 12
"""Names of a cycle that a message prints; of a longer one the middle is left out."""


def check(
    names: Sequence[str], upstreams: Sequence[Sequence[str]], field: str = "tasks"
) -> list[int]:
    """Return the positions of the tasks of a field in topological order.

    GraphError if two tasks have one name, if an upstream is unknown, named twice or the task
    itself, or if there is a cycle, which the message prints.
    """
    positions = {name: at for at, name in enumerate(names)}
    if len(positions) < len(names):
        raise _same_name(names, field)
    found = [
        _resolve(at, named, names, positions, field) if named else ()
        for at, named in enumerate(upstreams)
    ]
    downstreams: dict[int, list[int]] = {}
    for at, ups in enumerate(found):
        for upstream in ups:
            downstreams.setdefault(upstream, []).append(at)
    remaining = [len(ups) for ups in found]
    sorted_ = [at for at, count in enumerate(remaining) if not count]
    # The list is also the queue: tasks whose upstreams are all sorted are appended during the loop.
    for at in sorted_:
        for downstream in downstreams.get(at, ()):
            remaining[downstream] -= 1
            if not remaining[downstream]:
                sorted_.append(downstream)
    if len(sorted_) < len(names):
        cycle = _cycle(found, remaining)
        raise errors.GraphError(_cycle_message(cycle, names), field, cycle[0], "dependsOn")
    return sorted_


def _same_name(names: Sequence[str], field: str) -> errors.GraphError:
    seen: dict[str, int] = {}
    first, again = next(
        (first, at) for at, name in enumerate(names) if (first := seen.setdefault(name, at)) != at
    )
    return errors.GraphError(
        f"two tasks are named {names[again]!r}: {field}[{first}] and {field}[{again}];"
        " give one of them another name",
        *(field, again, "name"),
    )


def _resolve(
    at: int, named: Sequence[str], names: Sequence[str], positions: Mapping[str, int], field: str
) -> list[int]:
    found = [positions.get(name, -1) for name in named]
    if -1 in found or at in found or len(set(found)) < len(found):
        which, fault = _fault(at, named, positions)
        message = f"task {names[at]!r} ({field}[{at}]) {fault}"
        raise errors.GraphError(message, field, at, "dependsOn", which)
    return found


def _fault(at: int, named: Sequence[str], positions: Mapping[str, int]) -> tuple[int, str]:
    for which, name in enumerate(named):
        if name not in positions:
            nearest = difflib.get_close_matches(name, positions, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            return which, f"depends on {name!r}, which is not a task of this workflow{hint}"
        if positions[name] == at:
            return which, "depends on itself; remove that dependency"
    which = next(which for which, name in enumerate(named) if name in named[:which])
    return which, f"names {named[which]!r} twice under dependsOn; name each upstream once"


def _cycle(upstreams: Sequence[Sequence[int]], remaining: Sequence[int]) -> list[int]:
    """Return a shortest cycle through one of its tasks, from the task back to itself."""
    # A task that was not sorted is on a cycle or downstream of one, and has an upstream that was
    # not sorted either. So following such upstreams reaches a task for the second time.
    goal = next(at for at, count in enumerate(remaining) if count)
    seen: set[int] = set()
    while goal not in seen:
        seen.add(goal)
        goal = next(upstream for upstream in upstreams[goal] if remaining[upstream])
    next_on_path: dict[int, int] = {}
    queue = [goal]
    for at in queue:
        for upstream in upstreams[at]:
            if upstream not in next_on_path:
                next_on_path[upstream] = at
                queue.append(upstream)
        if goal in next_on_path:
            break
    path = [goal]
    while len(path) == 1 or path[-1] != goal:
        path.append(next_on_path[path[-1]])
    return path


def _cycle_message(cycle: Sequence[int], names: Sequence[str]) -> str:
    shown = [names[at] for at in cycle]
    if len(shown) > _SHOWN:
        half = _SHOWN // 2
        shown = [*shown[:half], f"({len(shown) - 2 * half} more)", *shown[-half:]]
    return (
        f"these tasks depend on each other in a cycle: {' -> '.join(shown)};"
        " remove one of these dependencies"
    )
