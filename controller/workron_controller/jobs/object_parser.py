"""What an object of the cluster is, and what it asks for: from the API server's JSON. Pure.

Called by `doorbell` for who it is, and by `carrier` for what it asks for, which takes longer.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pydantic

from workron.core import errors, planner
from workron.core.manifest import problems
from workron.core.model.job import Job
from workron.core.model.workflow import Workflow
from workron.core.plan import Kind
from workron.store.types import RunUpdate
from workron_controller.jobs import cache
from workron_controller.jobs.cache import CachedObject, StatusReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from workron.core.plan import Plan


INVALID: Final = "InvalidSpec"
NO_DAG: Final = "InvalidGraph"
_SHOWN: Final = 5
_MESSAGE: Final = 1024
_TTL: Final = "ttlSecondsAfterFinished"
_SUSPEND: Final = "suspend"
_TASKS: Final = "tasks"
_POOL: Final = "pool"
_USUAL: Final = "default"


class InvalidObjectError(errors.InputError):
    """An object asks for what cannot be done."""

    def __init__(self, refusal: StatusReason) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def parse_object(kind: Kind, raw: Mapping[str, Any]) -> CachedObject:
    """Say who it is; nothing that a person wrote into it can stop that."""
    metadata = raw["metadata"]
    spec, status = raw.get("spec"), raw.get("status")
    spec = spec if isinstance(spec, dict) else {}
    ttl = spec.get(_TTL)
    return CachedObject(
        uid=UUID(metadata["uid"]),
        kind=kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        generation=cache.generation(raw),
        status=status if isinstance(status, dict) else {},
        ttl_seconds=ttl if isinstance(ttl, int) else None,
        is_suspended=spec.get(_SUSPEND) is True,
        pools=tuple(sorted(set(_pools(spec)))),
    )


def _pools(spec: Mapping[str, Any]) -> Iterator[str]:
    tasks = spec.get(_TASKS)
    for task in tasks if isinstance(tasks, list) else ():
        pool = task.get(_POOL, _USUAL) if isinstance(task, dict) else None
        if isinstance(pool, str):
            yield pool


def parse_plan(kind: Kind, raw: Mapping[str, Any]) -> Plan:
    """Flatten what it asks for; RefusedError says why that cannot be done."""
    parsed = _parsed(kind, raw)
    uid = UUID(raw["metadata"]["uid"])
    try:
        flat = (
            planner.plan_job(parsed, uid)
            if isinstance(parsed, Job)
            else planner.plan_workflow(parsed, uid)
        )
    except errors.GraphError as error:
        raise InvalidObjectError(StatusReason(NO_DAG, _shortened(str(error)))) from None
    edition = cache.generation(raw)
    if not parsed.spec.cancel:
        return dataclasses.replace(flat, generation=edition)
    # It must not begin before it is cancelled, which is the next edition that the store hears of.
    return dataclasses.replace(flat, is_suspended=True, generation=edition - 1)


def parse_update(kind: Kind, raw: Mapping[str, Any]) -> RunUpdate:
    """Say what it wants of what may be edited; RefusedError if that cannot be read."""
    spec = _parsed(kind, raw).spec
    return RunUpdate(cache.generation(raw), spec.cancel, spec.suspend, spec.priority)


def _parsed(kind: Kind, raw: Mapping[str, Any]) -> Job | Workflow:
    model = Job if kind is Kind.JOB else Workflow
    try:
        return model.parse(raw)
    except pydantic.ValidationError as error:
        found, more = problems.explain(error, model)
        told = [f"{problems.format_path(path)}: {message}" for path, message in found[:_SHOWN]]
        if hidden := more + len(found) - len(told):
            told.append(f"and {hidden:,} more")
        raise InvalidObjectError(StatusReason(INVALID, _shortened("; ".join(told)))) from None


def _shortened(message: str) -> str:
    return message if len(message) <= _MESSAGE else message[: _MESSAGE - 1] + "…"
