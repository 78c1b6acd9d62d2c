"""Breadth-first search of all that the rules allow, and whether all jobs can still end.

The first broken invariant ends the search, so its path is a shortest one.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.protocol import space
from tests.protocol.invariants import Invariant
from tests.protocol.rare_branches import RareBranch
from tests.protocol.rules import Fault, Rules
from tests.protocol.state import State, initial


@dataclass(slots=True, kw_only=True)
class Report:
    """The result of a search; `path` leads from the beginning to the broken invariant, if any."""

    rules: Rules
    states: int
    transitions: int
    depth: int
    seconds: float
    """CPU time, so that other processes of the machine have little effect."""
    broken: Invariant | None
    path: list[State]
    marks: set[RareBranch]
    faults: set[Fault]


@dataclass(slots=True)
class _Search:
    """The snapshots in the order of discovery, and their successors."""

    keys: list[int] = field(default_factory=list)
    indexes: dict[int, int] = field(default_factory=dict)
    parents: array[int] = field(default_factory=lambda: array("q"))
    healing: array[int] = field(default_factory=lambda: array("I"))
    """Indexes of the successors by steps without faults, one snapshot after the other."""
    bounds: array[int] = field(default_factory=lambda: array("Q", [0]))
    """Where in `healing` the successors of each snapshot end."""
    transitions: int = 0
    levels: int = 0
    broken: Invariant | None = None
    last: int = 0
    """The index at which an invariant broke."""
    beyond: int | None = None
    """The snapshot after a step that broke an invariant."""


def explore(rules: Rules) -> Report:
    """Search everything, or until an invariant breaks."""
    started = time.process_time()
    graph, search = space.Space(rules), _Search()
    _search(graph, search)
    if search.broken is None:
        _check_progress(graph, search)
    return Report(
        rules=rules,
        states=len(search.keys),
        transitions=search.transitions,
        depth=search.levels - 1,
        seconds=time.process_time() - started,
        broken=search.broken,
        path=[graph.state(key) for key in _path(search)] if search.broken else [],
        marks=graph.marks,
        faults={fault for shared in graph.shared.values for fault in shared.used},
    )


def _search(graph: space.Space, search: _Search) -> None:
    start = initial(graph.rules.workers, graph.rules.jobs)
    _found(graph, search, graph.key(start), -1)
    level = range(1)
    while level:
        search.levels += 1
        for index in level:
            if not _expand(graph, search, index):
                return
        level = range(level.stop, len(search.keys))


def _expand(graph: space.Space, search: _Search, index: int) -> bool:
    """Follow every move out of one snapshot; False: an invariant broke."""
    indexes, healing = search.indexes, search.healing
    for key, move in graph.edges(search.keys[index]):
        search.transitions += 1
        if move.broken is not None:
            search.broken, search.last, search.beyond = move.broken, index, key
            return False
        after = indexes.get(key)
        if after is None:
            after = _found(graph, search, key, index)
            if search.broken is not None:
                return False
        if not move.is_fault:
            healing.append(after)
    search.bounds.append(len(healing))
    return True


def _found(graph: space.Space, search: _Search, key: int, parent: int) -> int:
    index = search.indexes[key] = len(search.keys)
    search.keys.append(key)
    search.parents.append(parent)
    search.broken, search.last = graph.verdict(key), index
    return index


def _check_progress(graph: space.Space, search: _Search) -> None:
    """Find a snapshot from which not all jobs can end by steps without faults."""
    can_end = bytearray(graph.is_done(key) for key in search.keys)
    healing, bounds = search.healing, search.bounds
    is_growing = True
    while is_growing:
        is_growing = False
        # Backwards, because successors were usually found later.
        for index in range(len(can_end) - 1, -1, -1):
            if can_end[index]:
                continue
            for position in range(bounds[index], bounds[index + 1]):
                if can_end[healing[position]]:
                    can_end[index] = is_growing = True
                    break
    stuck = can_end.find(0)
    if stuck >= 0:
        search.broken, search.last = Invariant.PROGRESS, stuck


def _path(search: _Search) -> Iterator[int]:
    indexes = [search.last]
    while search.parents[indexes[-1]] >= 0:
        indexes.append(search.parents[indexes[-1]])
    yield from (search.keys[index] for index in reversed(indexes))
    if search.beyond is not None:
        yield search.beyond
