"""Tying roots to each other: upstreams by name become edges, and a circle of them is refused.

Called by `submit`, once the names of a whole submission stand.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from workron.core import errors
from workron.store.sqlite import planting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron.store.sqlite.planting import Plot
    from workron.store.sqlite.transaction import Transaction


def bind(tx: Transaction, plot: Plot) -> None:
    """Tie a new root to the upstreams that exist, and to all that waited for its name."""
    name = planting.name_of(plot.plan.identity)
    if tx.run("submit.choose_upstreams", **plot.range(), **name):
        tx.run("submit.bind")
        tx.run("submit.tell_bound")
        tx.run("submit.unname", **plot.range(), **name)
        tx.run("clear.bond")


def refuse_cycle(tx: Transaction, plot: Plot) -> None:
    """Raise CycleError if a new root waits for itself, directly or over others."""
    rows = tx.rows("submit.walk", root=plot.root)
    if all(row["downstream"] != plot.root for row in rows):
        return
    names = {row["downstream"]: row["name"] for row in rows}
    circle = " -> ".join(names[root] for root in _circle(rows, plot.root))
    message = f"jobs wait for each other: {circle}; take one of these waits out"
    raise errors.CycleError(message, [plot.plan.identity.uid])


def _circle(rows: Sequence[Any], start: int) -> list[int]:
    """Find a shortest way from `start` back to it, each before who waits for it."""
    downstreams: Mapping[int, list[int]] = defaultdict(list)
    for row in rows:
        downstreams[row["upstream"]].append(row["downstream"])
    ways = [[start]]
    seen: set[int] = set()
    for way in ways:
        for downstream in downstreams[way[-1]]:
            if downstream == start:
                return [*way, start]
            if downstream not in seen:
                seen.add(downstream)
                ways.append([*way, downstream])
    raise AssertionError("called only when there is one")
