"""The transitions of a cached object; no other module assigns its fields."""

import ast
import dataclasses
import pathlib
from typing import Any
from uuid import UUID

import workron_controller
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import State
from workron_controller.jobs.cache import CachedObject, ObjectCache, ObservedObject
from workron_controller.kube.conditions import StatusReason

_RUN = JobId(7)


def _observed(generation: int = 1, **fields: Any) -> ObservedObject:
    return ObservedObject(UUID(int=1), Kind.JOB, "default", "job", generation, **fields)


def _cached(generation: int = 1, **fields: Any) -> CachedObject:
    return CachedObject(_observed(generation, **fields))


def test_observed_takes_over_an_object_unless_it_is_older() -> None:
    cached = _cached(2)
    cached.observed(_observed(1, is_suspended=True))
    assert (cached.latest.generation, cached.latest.is_suspended) == (2, False)
    cached.observed(_observed(2, status={"phase": "Running"}))
    assert cached.phase == "Running"
    cached.observed(_observed(3, ttl_seconds=5))
    assert (cached.latest.generation, cached.latest.ttl_seconds) == (3, 5)


def test_observed_object_needs_submit_until_its_generation_is_submitted() -> None:
    cached = _cached(2)
    needs_submit = [cached.needs_submit]
    for generation in (1, 2):
        cached.submitted(_RUN, generation)
        needs_submit.append(cached.needs_submit)
    assert needs_submit == [True, True, False]
    assert (cached.run, cached.submitted_generation) == (_RUN, 2)


def test_finished_object_without_a_run_needs_no_submit() -> None:
    cached = _cached(status={"phase": "Succeeded"})
    assert not cached.needs_submit
    cached.run_found(_RUN)
    assert cached.needs_submit


def test_rejected_object_is_active_until_it_is_submitted() -> None:
    cached = _cached(3)
    assert not cached.is_active
    reason = StatusReason("InvalidSpec", "spec.command: missing")
    cached.rejected(reason)
    assert (cached.is_active, cached.rejection, cached.submitted_generation) == (True, reason, 3)
    assert not cached.needs_submit
    cached.submitted(_RUN, 3)
    assert cached.rejection is None


def test_submitted_object_is_active_until_its_status_reports_the_end() -> None:
    cached = _cached()
    cached.submitted(_RUN, 1)
    assert cached.is_active
    cached.state_read(State.SUCCEEDED)
    assert cached.is_active
    cached.status_written({"phase": "Succeeded"}, cached.synced_inputs)
    assert (cached.is_active, cached.is_finished) == (False, True)
    cached.state_read(State.RUNNING)
    assert cached.is_active


def test_status_stays_pending_since_the_first_time_when_it_is_pending_twice() -> None:
    cached = _cached()
    cached.status_pending(10)
    cached.status_pending(20)
    assert cached.pending_since == 10
    cached.status_settled()
    assert cached.pending_since is None


def test_status_is_computed_again_when_its_inputs_changed_during_the_write() -> None:
    cached = _cached()
    cached.status_synced("first")
    cached.status_written({"phase": "Queued"}, "first")
    assert (cached.synced_inputs, cached.phase) == ("first", "Queued")
    cached.status_synced("second")
    cached.status_written({"phase": "Running"}, "first")
    assert cached.synced_inputs is None
    cached.status_synced("third")
    cached.status_synced(None)
    assert cached.synced_inputs is None


def test_written_status_counts_until_it_is_unknown() -> None:
    cached = _cached(status={"phase": "Waiting"})
    cached.status_synced("inputs")
    cached.status_written({"phase": "Running"}, "inputs")
    cached.observed(_observed(status={"phase": "Waiting"}))
    assert cached.phase == "Running"
    cached.status_unknown()
    assert (cached.phase, cached.synced_inputs) == ("Waiting", None)


def test_malformed_phase_is_no_phase() -> None:
    assert _cached(status={"phase": ["Succeeded"]}).phase == ""


def test_cache_keeps_the_state_of_an_object_when_it_is_observed_again() -> None:
    cache = ObjectCache()
    cache.upsert(_observed()).submitted(_RUN, 1)
    again = cache.upsert(_observed(2))
    assert (again.run, again.latest.generation, len(cache)) == (_RUN, 2, 1)
    cache.remove(again.uid)
    assert cache.get(again.uid) is None


def test_only_the_cache_assigns_fields_of_a_cached_object() -> None:
    fields = {field.name for field in dataclasses.fields(CachedObject)}
    package = pathlib.Path(workron_controller.__file__).parent
    modules = [path for path in package.rglob("*.py") if path.name != "cache.py"]
    assert len(modules) > 20
    writes = [
        f"{path.name}:{node.lineno}"
        for path in modules
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr in fields
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]
    assert writes == []
