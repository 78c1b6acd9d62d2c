"""Parses Jobs and Workflows from the API server's JSON. Pure.

`parse_object` reads identity and a few fields, and accepts anything that a user may have written.
`parse_plan` and `parse_update` validate the whole spec, which takes longer; the submitter calls
them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

import pydantic

from workron.core import errors, planner
from workron.core.manifest import problems
from workron.core.model.job import Job
from workron.core.model.workflow import Workflow
from workron.core.plan import Kind, Plan
from workron.store.types import RunUpdate
from workron_controller.jobs.cache import ObservedObject
from workron_controller.kube import resources
from workron_controller.kube.conditions import StatusReason

INVALID_SPEC: Final = "InvalidSpec"
INVALID_GRAPH: Final = "InvalidGraph"
_MAX_PROBLEMS: Final = 5
_MAX_MESSAGE: Final = 1024
_DEFAULT_POOL: Final = "default"


class InvalidObjectError(errors.InputError):
    """The spec of an object cannot be run."""

    def __init__(self, reason: StatusReason) -> None:
        super().__init__(reason.message)
        self.reason = reason


def parse_object(kind: Kind, raw: Mapping[str, Any]) -> ObservedObject:
    """Read identity and status; fields that a user wrote are ignored where they are malformed."""
    metadata = raw["metadata"]
    spec, status = raw.get("spec"), raw.get("status")
    spec = spec if isinstance(spec, dict) else {}
    ttl = spec.get("ttlSecondsAfterFinished")
    return ObservedObject(
        uid=UUID(metadata["uid"]),
        kind=kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        generation=resources.generation_of(raw),
        status=status if isinstance(status, dict) else {},
        ttl_seconds=ttl if isinstance(ttl, int) else None,
        is_suspended=spec.get("suspend") is True,
        pools=tuple(sorted(set(_task_pools(spec)))),
    )


def _task_pools(spec: Mapping[str, Any]) -> Iterator[str]:
    defaults = spec.get("defaults")
    default = defaults.get("pool") if isinstance(defaults, dict) else None
    for tasks in (spec.get("tasks"), spec.get("finally")):
        for task in tasks if isinstance(tasks, list) else ():
            pool = task.get("pool", default or _DEFAULT_POOL) if isinstance(task, dict) else None
            if isinstance(pool, str):
                yield pool


def parse_plan(kind: Kind, raw: Mapping[str, Any]) -> Plan:
    """Validate an object and plan its jobs; raises InvalidObjectError."""
    parsed = _parse(kind, raw)
    uid = UUID(raw["metadata"]["uid"])
    try:
        plan = (
            planner.plan_job(parsed, uid)
            if isinstance(parsed, Job)
            else planner.plan_workflow(parsed, uid)
        )
    except errors.GraphError as error:
        raise InvalidObjectError(StatusReason(INVALID_GRAPH, _shorten(str(error)))) from None
    except errors.SpecError as error:
        raise InvalidObjectError(StatusReason(INVALID_SPEC, _shorten(str(error)))) from None
    generation = resources.generation_of(raw)
    if not parsed.spec.is_cancelled:
        return dataclasses.replace(plan, generation=generation)
    # Submitted suspended and one generation older, so that nothing starts before the update to
    # this generation cancels it.
    return dataclasses.replace(plan, is_suspended=True, generation=generation - 1)


def parse_update(kind: Kind, raw: Mapping[str, Any]) -> RunUpdate:
    """Validate an object and return its editable fields; raises InvalidObjectError."""
    spec = _parse(kind, raw).spec
    return RunUpdate(
        *(resources.generation_of(raw), spec.is_cancelled, spec.suspend, spec.priority),
        is_forced=spec.is_forced,
    )


def _parse(kind: Kind, raw: Mapping[str, Any]) -> Job | Workflow:
    model = Job if kind is Kind.JOB else Workflow
    try:
        return model.parse(raw)
    except pydantic.ValidationError as error:
        found, more = problems.explain(error, model)
        lines = [
            f"{problems.format_path(path)}: {message}" for path, message in found[:_MAX_PROBLEMS]
        ]
        if hidden := more + len(found) - len(lines):
            lines.append(f"and {hidden:,} more")
        raise InvalidObjectError(StatusReason(INVALID_SPEC, _shorten("; ".join(lines)))) from None


def _shorten(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"
