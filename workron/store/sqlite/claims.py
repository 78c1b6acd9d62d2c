"""Claiming ready jobs, and collecting what a worker needs to run them."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from workron.core import errors, jobspec, payloads
from workron.core.states import State
from workron.store.sqlite import engine
from workron.store.types import ClaimedJob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from workron.core.ids import ClaimId, SessionKey
    from workron.store.sqlite.engine import Transaction


_Inputs = tuple[Any, bool]
"""A job's inputs, and whether they are too large."""

_NOTHING: Final[_Inputs] = (None, False)
_TOO_LARGE: Final[_Inputs] = (None, True)


def find_session(tx: Transaction, key: SessionKey) -> Any:
    """Find the row behind a session key, or raise SessionError."""
    worker = tx.row("find_session", session=str(key))
    if worker is None:
        raise errors.SessionError("unknown session key: the worker was reaped, or never registered")
    return worker


def claim(tx: Transaction, key: SessionKey, claims: Sequence[ClaimId]) -> list[ClaimedJob]:
    """Claim jobs for a worker, and return all claims that it holds under these ids."""
    tx.clear()
    return claim_ready(tx, find_session(tx, key), claims)


def claim_ready(tx: Transaction, worker: Any, claims: Sequence[ClaimId]) -> list[ClaimedJob]:
    """Move ready jobs to a worker, unless this repeats a call that did."""
    wanted = engine.json_list(map(str, claims))
    if not tx.run("claim.select_repeated", claims=wanted) and not worker["draining"]:
        _claim_new(tx, worker, wanted, len(claims))
    return _claimed_jobs(tx, tx.rows("claim.claimed_jobs", worker=worker["id"]), claims)


def _claim_new(tx: Transaction, worker: Any, wanted: str, count: int) -> None:
    who = {"worker": worker["id"], "pool": worker["pool"]}
    constraints = tx.row("claim.constraints", **who)
    alone = constraints["is_alone_ready"] and not constraints["holds_any"]
    if constraints["holds_alone"]:
        return
    if (
        constraints["is_alone_ready"]
        and not alone
        and tx.row("claim.is_reserved_for_alone", **who)["is_reserved"]
    ):
        return
    count = min(count, 1) if alone else count
    if tx.run("claim.select_ready", alone=alone, count=count, **who):
        tx.run("claim.delete_ready")
        tx.run("claim.insert_running", claims=wanted)


def _claimed_jobs(
    tx: Transaction, rows: Sequence[Any], claims: Sequence[ClaimId]
) -> list[ClaimedJob]:
    specs = {
        row["id"]: jobspec.of_text(row["body"])
        for row in tx.rows("claim.specs", specs=engine.json_list({row["spec"] for row in rows}))
    }
    inputs = _inputs(tx, [row["job"] for row in rows if row["feeds_inputs"]])
    claimed = []
    for row in rows:
        number, job, *values, item, spec, _, run_state = row
        values += [
            specs[spec],
            None if item is None else json.loads(item),
            *inputs.get(job, _NOTHING),
            None if run_state is None else State(run_state),
        ]
        claimed.append(ClaimedJob(job, claims[number - 1], *values))
    return claimed


def _inputs(tx: Transaction, jobs: Sequence[int]) -> Mapping[int, _Inputs]:
    """Collect the inputs of each job by upstream name."""
    if not jobs:
        return {}
    upstreams: dict[int, list[Any]] = defaultdict(list)
    for row in tx.rows("claim.upstreams", jobs=engine.json_list(jobs)):
        upstreams[row["downstream"]].append(row)
    parents = {row["upstream"] for rows in upstreams.values() for row in rows}
    sizes = {
        row["upstream"]: row["size"]
        for row in tx.rows("claim.result_sizes", upstreams=engine.json_list(parents))
    }
    # Inputs that are too large are never read.
    fitting = {
        job: rows
        for job, rows in upstreams.items()
        if sum(sizes[row["upstream"]] for row in rows) <= payloads.MAX_INPUT_BYTES
    }
    given = {row["upstream"] for rows in fitting.values() for row in rows if sizes[row["upstream"]]}
    results = _results(tx, given)
    return {
        job: _inputs_of_one(rows, results) if job in fitting else _TOO_LARGE
        for job, rows in upstreams.items()
    }


def _inputs_of_one(upstreams: Sequence[Any], results: Mapping[int, str]) -> _Inputs:
    members = [
        f"{json.dumps(row['name'])}: {results[row['upstream']]}"
        for row in upstreams
        if row["upstream"] in results
    ]
    return payloads.inputs_fit("{" + ", ".join(members) + "}" if members else None)


def _results(tx: Transaction, parents: Iterable[int]) -> dict[int, str]:
    """Read each upstream's result once, as JSON; the result of an array is a list."""
    rows = tx.rows("claim.results", upstreams=engine.json_list(parents))
    results = {}
    for parent, found in itertools.groupby(rows, itemgetter("upstream")):
        first, *others = found
        bodies = [row["body"] or "null" for row in (first, *others)]
        results[parent] = bodies[0] if first["index"] is None else f"[{', '.join(bodies)}]"
    return results
