"""Names, `kubectl get` columns, selectable fields and subresources of the three kinds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from workron.core.model import meta, workerpool
from workron.core.model.job import Job
from workron.core.model.workerpool import WorkerPool
from workron.core.model.workflow import Workflow

_NOT_OBSERVED: Final = {
    "type": "Reconciling",
    "status": "True",
    "reason": "NotObservedYet",
    "message": "The controller has not looked at this object yet.",
}
"""The default condition: tools take an object without conditions for ready. It has no time."""


class PrinterColumn(NamedTuple):
    """A column of `kubectl get`; `is_wide` ones need `-o wide`."""

    name: str
    path: str
    type: str = "string"
    is_wide: bool = False

    def as_manifest(self) -> dict[str, Any]:
        """Return it as a part of the definition."""
        wide = {"priority": 1} if self.is_wide else {}
        return {"name": self.name, "type": self.type, "jsonPath": self.path} | wide


_STATUS: Final = PrinterColumn("Status", ".status.phase")
_REASON: Final = PrinterColumn("Reason", ".status.reason")
_STARTED: Final = PrinterColumn("Started", ".status.startedAt", "date")
_FINISHED: Final = PrinterColumn("Finished", ".status.finishedAt", "date", is_wide=True)
_MESSAGE: Final = PrinterColumn("Message", ".status.message", is_wide=True)
_AGE: Final = PrinterColumn("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True)
class CustomResourceKind:
    """The parts of a kind's definition other than its fields."""

    model: type[meta.Resource]
    plural: str
    short: str
    columns: tuple[PrinterColumn, ...]
    status: dict[str, Any]
    """The default status."""
    selectable_fields: tuple[str, ...] = ()
    is_immutable: bool = True
    """Whether most fields of its spec cannot be changed."""
    subresources: dict[str, Any] = field(default_factory=dict)
    """In addition to the status."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Schema of the metadata, where names are more limited than the cluster's."""

    @property
    def name(self) -> str:
        """The kind in manifests."""
        return self.model.__name__


KINDS: Final = (
    CustomResourceKind(
        Job,
        "workronjobs",
        "wj",
        (
            _STATUS,
            PrinterColumn("Attempt", ".status.attempts", "integer"),
            PrinterColumn("Pool", ".spec.pool"),
            _REASON,
            _STARTED,
            _AGE,
            PrinterColumn("Worker", ".status.worker", is_wide=True),
            PrinterColumn("Exit code", ".status.exitCode", "integer", is_wide=True),
            _FINISHED,
            _MESSAGE,
        ),
        status={"phase": "Waiting", "conditions": [_NOT_OBSERVED]},
        selectable_fields=(".spec.pool", ".status.phase"),
    ),
    CustomResourceKind(
        Workflow,
        "workronflows",
        "wflow",
        (
            _STATUS,
            PrinterColumn("Jobs", ".status.jobs.total", "integer"),
            PrinterColumn("Done", ".status.jobs.done", "integer"),
            PrinterColumn("Failed", ".status.jobs.failed", "integer"),
            _REASON,
            _STARTED,
            _AGE,
            PrinterColumn("Running", ".status.jobs.running", "integer", is_wide=True),
            _FINISHED,
            _MESSAGE,
        ),
        status={"phase": "Waiting", "conditions": [_NOT_OBSERVED]},
        selectable_fields=(".status.phase",),
    ),
    CustomResourceKind(
        WorkerPool,
        "workerpools",
        "wpool",
        (
            PrinterColumn("Ready", ".status.readyReplicas", "integer"),
            PrinterColumn("Desired", ".status.desiredReplicas", "integer"),
            PrinterColumn("Busy", ".status.busy", "integer"),
            PrinterColumn("Queued", ".status.queued", "integer"),
            PrinterColumn("Slots", ".spec.slots", "integer"),
            _AGE,
            PrinterColumn("Min", ".spec.minReplicas", "integer", is_wide=True),
            PrinterColumn("Max", ".spec.maxReplicas", "integer", is_wide=True),
            PrinterColumn("Image", ".spec.image", is_wide=True),
        ),
        status={"conditions": [_NOT_OBSERVED]},
        is_immutable=False,
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
