"""claim: moving ready jobs into claims, and putting together what their runs need.

Called by `worker` and, as the second half of a complete, by `reporting`.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, jobspec, payloads
from workron.store.sqlite import engine
from workron.store.types import ClaimedJob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from workron.core.ids import ClaimId, SessionKey
    from workron.core.jobspec import Spec
    from workron.store.sqlite.engine import Transaction


_Given = tuple[Any, bool]
"""A job's inputs, and whether they are too large to be given."""

_NOTHING: Final[_Given] = (None, False)
_TOO_LARGE: Final[_Given] = (None, True)


def worker_of(tx: Transaction, key: SessionKey) -> Any:
    """Find the row behind a session key, or raise SessionError."""
    worker = tx.row("session.worker", session=str(key))
    if worker is None:
        raise errors.SessionError(
            "no worker has this session key: it was taken back, or never registered"
        )
    return worker


def claim(tx: Transaction, key: SessionKey, claims: Sequence[ClaimId]) -> list[ClaimedJob]:
    """Take what the worker may have, and give all that it holds under these ids."""
    tx.clear()
    return take(tx, worker_of(tx, key), claims)


def take(tx: Transaction, worker: Any, claims: Sequence[ClaimId]) -> list[ClaimedJob]:
    """Move ready jobs to a worker, unless this is the repetition of a call that did."""
    wanted = engine.listed(map(str, claims))
    if not tx.run("claim.repeat", claims=wanted) and not worker["draining"]:
        _take_new(tx, worker, wanted, len(claims))
    return _describe(tx, tx.rows("claim.claimed", worker=worker["id"]), claims)


def _take_new(tx: Transaction, worker: Any, wanted: str, count: int) -> None:
    who = {"worker": worker["id"], "pool": worker["pool"]}
    terms = tx.row("claim.terms", **who)
    alone = terms["is_alone_ready"] and not terms["holds_any"]
    if terms["holds_alone"]:
        return
    if terms["is_alone_ready"] and not alone and tx.row("claim.makes_room", **who)["makes_room"]:
        return
    count = min(count, 1) if alone else count
    if tx.run("claim.take", alone=alone, count=count, **who):
        tx.run("claim.leave_ready")
        tx.run("claim.run", claims=wanted)


def _describe(tx: Transaction, rows: Sequence[Any], claims: Sequence[ClaimId]) -> list[ClaimedJob]:
    specs = _specs(tx, {row["spec"] for row in rows})
    given = _inputs(tx, [row["job"] for row in rows if row["feeds_inputs"]])
    return [_claimed(row, claims, specs, given) for row in rows]


def _claimed(
    row: Any, claims: Sequence[ClaimId], specs: Mapping[int, Spec], given: Mapping[int, _Given]
) -> ClaimedJob:
    # By place, which is quicker than by name: in the order of the statement's columns.
    place, job, attempt, failures, losses, fence, namespace, run, name, index, item, of, _ = row
    found, are_too_large = given.get(job, _NOTHING)
    return ClaimedJob(
        job=job,
        claim=claims[place - 1],
        attempt=attempt,
        failures=failures,
        losses=losses,
        fence=fence,
        namespace=namespace,
        run=run,
        name=name,
        index=index,
        item=None if item is None else json.loads(item),
        spec=specs[of],
        inputs=found,
        inputs_too_large=are_too_large,
    )


def _specs(tx: Transaction, wanted: set[int]) -> dict[int, Spec]:
    return {
        row["id"]: jobspec.of_text(row["body"])
        for row in tx.rows("claim.specs", specs=engine.listed(wanted))
    }


def _inputs(tx: Transaction, jobs: Sequence[int]) -> Mapping[int, _Given]:
    """Gather each job's inputs by upstream name, or say that they are too large."""
    if not jobs:
        return {}
    upstreams: dict[int, list[Any]] = defaultdict(list)
    for row in tx.rows("claim.upstreams", jobs=engine.listed(jobs)):
        upstreams[row["child"]].append(row)
    parents = {row["parent"] for rows in upstreams.values() for row in rows}
    sizes = {
        row["parent"]: row["size"]
        for row in tx.rows("claim.result_sizes", parents=engine.listed(parents))
    }
    # What is too large together is never read.
    fitting = {
        job: rows
        for job, rows in upstreams.items()
        if sum(sizes[row["parent"]] for row in rows) <= payloads.MAX_INPUT_BYTES
    }
    given = {row["parent"] for rows in fitting.values() for row in rows if sizes[row["parent"]]}
    results = _results(tx, given)
    return {
        job: _inputs_of_one(rows, results) if job in fitting else _TOO_LARGE
        for job, rows in upstreams.items()
    }


def _inputs_of_one(upstreams: Sequence[Any], results: Mapping[int, str]) -> _Given:
    members = [
        f"{json.dumps(row['name'])}: {results[row['parent']]}"
        for row in upstreams
        if row["parent"] in results
    ]
    return payloads.inputs_fit("{" + ", ".join(members) + "}" if members else None)


def _results(tx: Transaction, parents: Iterable[int]) -> dict[int, str]:
    """Read each upstream's result once, as JSON; an array's is a list."""
    rows = tx.rows("claim.results", parents=engine.listed(parents))
    return {
        parent: _one_result(list(found))
        for parent, found in itertools.groupby(rows, itemgetter("parent"))
    }


def _one_result(rows: Sequence[Any]) -> str:
    bodies = [row["body"] or "null" for row in rows]
    return bodies[0] if rows[0]["index"] is None else f"[{', '.join(bodies)}]"
