"""Objects as the API server returns them, and the work of a worker on their jobs."""

import itertools
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from workron.core.ids import ClaimId
from workron.core.plan import Kind
from workron.store.api import Store
from workron.store.types import AttemptReport, ClaimedJob, Outcome, Session

Raw = dict[str, Any]

_numbers = itertools.count(1)


def job(name: str = "job", /, **spec: Any) -> Raw:
    """Return a Job."""
    return _object(Kind.JOB, name, {"command": "true"} | spec)


def workflow(name: str, /, *tasks: Mapping[str, Any], **spec: Any) -> Raw:
    """Return a Workflow."""
    full = [{"command": "true"} | dict(task) for task in tasks]
    return _object(Kind.WORKFLOW, name, {"tasks": full} | spec)


def edited(raw: Raw, **spec: Any) -> Raw:
    """Return the next generation of the object, with another spec."""
    metadata = raw["metadata"] | {"generation": raw["metadata"]["generation"] + 1}
    return raw | {"metadata": metadata, "spec": raw["spec"] | spec}


def with_status(raw: Raw, **status: Any) -> Raw:
    """Return the object with these fields in its status."""
    return raw | {"status": raw.get("status", {}) | status}


def uid_of(raw: Raw) -> uuid.UUID:
    return uuid.UUID(raw["metadata"]["uid"])


async def claimed(store: Store, session: Session, count: int = 1) -> Sequence[ClaimedJob]:
    """Have the worker claim jobs."""
    return await store.claim(session.key, [ClaimId(uuid.uuid4()) for _ in range(count)])


async def ended(store: Store, session: Session, one: ClaimedJob, **about: Any) -> None:
    """Have the worker report the end of an attempt."""
    outcome = {"outcome": Outcome.SUCCEEDED, "exit_code": 0}
    end = AttemptReport(one.job, *one.ref, **{**outcome, **about})
    await store.complete(session.key, [end])


def _object(kind: Kind, name: str, spec: Raw) -> Raw:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": str(uuid.UUID(int=next(_numbers))),
        "generation": 1,
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {
        "apiVersion": "workron.dev/v1alpha1",
        "kind": str(kind),
        "metadata": metadata,
        "spec": spec,
    }


async def not_terminating(_: str) -> bool:
    """Return that a namespace is not being deleted."""
    return False
