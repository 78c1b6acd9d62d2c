"""cancel, hold, resume and change of priority of a whole run, in bounded steps.

Each is a transaction of its own. Begun and driven by `submit` and `operator`; `maintain` goes on
with what a caller left unfinished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workron.store.sqlite import completion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workron.core.ids import JobId
    from workron.store.sqlite.engine import Transaction


_STEP: Final = 5_000


def begin_update(tx: Transaction, run: JobId, verb: str) -> bool:
    """Note what is wanted; False when the run has ended, or is too far gone for it."""
    if not tx.run(f"{verb}.ask", run=run):
        return False
    tx.run("sweep.begin", run=run, verb=verb, priority=None)
    return True


def update_step(tx: Transaction, run: JobId) -> bool:
    """Do a bounded part of what is wanted of a run; True when nothing is left to do."""
    sweep = tx.row("sweep.standing", run=run)
    if sweep is None:
        return True
    tx.clear()
    jobs = {"run": run, "last": sweep["last"]}
    moved = bool(sweep["verb"]) and _STEPS[sweep["verb"]](tx, jobs)
    if sweep["priority"] is not None:
        moved |= _prioritize(tx, jobs, sweep["priority"])
    if moved:
        return False
    tx.run("sweep.end", run=run)
    return True


def continue_updates(tx: Transaction) -> bool:
    """Do a step of the oldest sweep that was left unfinished; False when there is none."""
    oldest = tx.row("sweep.oldest")
    if oldest is None:
        return False
    update_step(tx, oldest["run"])
    return True


def _cancel(tx: Transaction, jobs: Mapping[str, int]) -> bool:
    tx.run("cancel.mark", **jobs)
    moved = sum(
        tx.run(f"cancel.take_{place}", **jobs, limit=_STEP)
        for place in ("ready", "deferred", "waiting")
    )
    leave_places(tx)
    completion.record_ends(tx)
    completion.defer_propagation(tx)
    return moved > 0


def _hold(tx: Transaction, jobs: Mapping[str, int]) -> bool:
    tx.run("suspend.mark", **jobs)
    moved = 0
    for place in ("ready", "deferred"):
        moved += tx.run(f"hold.take_{place}", **jobs, limit=_STEP)
        tx.run(f"hold.leave_{place}")
    moved += tx.run("suspend.hold_waiting", **jobs, limit=_STEP)
    completion.place_jobs(tx)
    return moved > 0


def _resume(tx: Transaction, jobs: Mapping[str, int]) -> bool:
    tx.run("resume.unmark", **jobs)
    moved = tx.run("resume.tell", **jobs, limit=_STEP)
    tx.run("resume.unhold")
    completion.conclude_groups(tx)
    return moved > 0


def _prioritize(tx: Transaction, jobs: Mapping[str, int], priority: int) -> bool:
    places = "ready", "deferred", "waiting", "running"
    changed = [
        tx.run(f"prioritize.{place}", **jobs, priority=priority, limit=_STEP) for place in places
    ]
    return any(changed)


def leave_places(tx: Transaction) -> None:
    """Take what stands in `ended` out of wherever it waited."""
    for place in ("ready", "deferred", "waiting"):
        tx.run(f"leave_places.{place}")


_STEPS: Final[Mapping[str, Callable[[Transaction, Mapping[str, int]], bool]]] = {
    "cancel": _cancel,
    "hold": _hold,
    "resume": _resume,
}
