"""How the three kinds are called in a cluster, what `kubectl get` shows of them and selects by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from workron.core.model import meta, workerpool
from workron.core.model.job import Job
from workron.core.model.workerpool import WorkerPool
from workron.core.model.workflow import Workflow

_NOT_SEEN: Final = {
    "type": "Reconciling",
    "status": "True",
    "reason": "NotSeenYet",
    "message": "The controller has not looked at this object yet.",
}
"""Who waits for an object by its conditions would take one without any for ready. It has no time:
nobody was there."""


class Column(NamedTuple):
    """One column of `kubectl get`; `is_wide` ones are shown with `-o wide` alone."""

    name: str
    path: str
    type: str = "string"
    is_wide: bool = False

    def as_manifest(self) -> dict[str, Any]:
        """Give it in the shape of a definition."""
        wide = {"priority": 1} if self.is_wide else {}
        return {"name": self.name, "type": self.type, "jsonPath": self.path} | wide


_STATUS: Final = Column("Status", ".status.phase")
_REASON: Final = Column("Reason", ".status.reason")
_STARTED: Final = Column("Started", ".status.startedAt", "date")
_FINISHED: Final = Column("Finished", ".status.finishedAt", "date", is_wide=True)
_MESSAGE: Final = Column("Message", ".status.message", is_wide=True)
_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True)
class Kind:
    """What a definition says of one kind beyond its fields."""

    model: type[meta.Resource]
    plural: str
    short: str
    columns: tuple[Column, ...]
    status: dict[str, Any]
    """That of an object that nobody has looked at."""
    selectable: tuple[str, ...] = ()
    is_frozen: bool = True
    """Whether most of its spec cannot be edited."""
    subresources: dict[str, Any] = field(default_factory=dict)
    """Beyond the status."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Bounds of the name that are narrower than the cluster's own."""

    @property
    def name(self) -> str:
        """The kind, as manifests have it."""
        return self.model.__name__


KINDS: Final = (
    Kind(
        Job,
        "workronjobs",
        "wj",
        (
            _STATUS,
            Column("Attempt", ".status.attempts", "integer"),
            Column("Pool", ".spec.pool"),
            _REASON,
            _STARTED,
            _AGE,
            Column("Worker", ".status.worker", is_wide=True),
            Column("Exit code", ".status.exitCode", "integer", is_wide=True),
            _FINISHED,
            _MESSAGE,
        ),
        status={"phase": "Waiting", "conditions": [_NOT_SEEN]},
        selectable=(".spec.pool", ".status.phase"),
    ),
    Kind(
        Workflow,
        "workronflows",
        "wflow",
        (
            _STATUS,
            Column("Jobs", ".status.jobs.total", "integer"),
            Column("Done", ".status.jobs.done", "integer"),
            Column("Failed", ".status.jobs.failed", "integer"),
            _REASON,
            _STARTED,
            _AGE,
            Column("Running", ".status.jobs.running", "integer", is_wide=True),
            _FINISHED,
            _MESSAGE,
        ),
        status={"phase": "Waiting", "conditions": [_NOT_SEEN]},
        selectable=(".status.phase",),
    ),
    Kind(
        WorkerPool,
        "workerpools",
        "wpool",
        (
            Column("Ready", ".status.readyReplicas", "integer"),
            Column("Desired", ".status.desiredReplicas", "integer"),
            Column("Busy", ".status.busy", "integer"),
            Column("Queued", ".status.queued", "integer"),
            Column("Slots", ".spec.slots", "integer"),
            _AGE,
            Column("Min", ".spec.minReplicas", "integer", is_wide=True),
            Column("Max", ".spec.maxReplicas", "integer", is_wide=True),
            Column("Image", ".spec.image", is_wide=True),
        ),
        status={"conditions": [_NOT_SEEN]},
        is_frozen=False,
        subresources={
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            }
        },
        metadata={
            "properties": {
                "name": {"type": "string", "maxLength": workerpool.MAX_NAME, "pattern": "^[^.]*$"}
            }
        },
    ),
)
