"""The kind WorkerPool: a named set of identical workers.

It has selected fields of a pod rather than a pod template, so that a user cannot accidentally
remove what Workron needs in its pods.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from workron.core import formats
from workron.core import lease as leases
from workron.core.formats import TextFormat
from workron.core.model import base
from workron.core.model.base import FewOf, Format, Labels, ListOf, ObjectName
from workron.core.model.meta import ObjectMeta, Resource
from workron.core.model.pod import (
    Affinity,
    EnvFrom,
    PoolEnvVar,
    Reference,
    Resources,
    Toleration,
    Volume,
    VolumeMount,
)
from workron.core.model.status import FromSystem, WorkerPoolStatus

MAX_NAME: Final = 52
"""Pod names and label values consist of this name and a revision."""

_HEARTBEATS_PER_LEASE: Final = 2
_OWN_PREFIX: Final = "workron.dev/"
_MAX_WORKERS: Final = 10_000

Image = Annotated[
    str, Format(TextFormat("an image reference, such as team/tools:1.4", 512, r"[^\s\"']+"))
]


def _unreserved(labels: dict[str, str]) -> dict[str, str]:
    for key in labels:
        if key.startswith(_OWN_PREFIX):
            raise ValueError(f"'{key}' is reserved: {_OWN_PREFIX} labels are set by the controller")
    return labels


class WorkerPoolSpec(base.Record):
    """Number of workers, their image and their pods."""

    image: Image | None = Field(
        None,
        description="Image in which commands run. Default: the worker image of this installation.",
    )
    slots: int = Field(
        4, ge=1, le=1000, description="Number of jobs that one worker runs at a time."
    )
    min_replicas: int = Field(0, ge=0, le=_MAX_WORKERS, description="Lowest number of workers.")
    max_replicas: int = Field(10, ge=0, le=_MAX_WORKERS, description="Highest number of workers.")
    replicas: int | None = Field(
        None,
        ge=0,
        le=_MAX_WORKERS,
        description="Fixed number of workers. If set, the pool does not scale with its queue.",
    )
    resources: Resources = Field(
        Resources(), description="Resources of the container in which commands run."
    )
    lease: base.PositiveDuration = Field(
        timedelta(seconds=60),
        description="How long a worker keeps its claims after its last heartbeat.",
    )
    heartbeat: base.PositiveDuration = Field(
        timedelta(seconds=2),
        description="Time between heartbeats of a worker. It sends at least four per lease.",
    )
    drain_timeout: base.Duration = Field(
        timedelta(minutes=10),
        description="How long a worker that is removed may finish its running jobs.",
    )
    env: Annotated[ListOf[PoolEnvVar], base.unique_by("name")] = Field(
        (), max_length=1000, description="Environment variables of every command of the pool."
    )
    env_from: FewOf[EnvFrom] = Field(
        (), description="Secrets and ConfigMaps whose keys become environment variables."
    )
    image_pull_secrets: FewOf[Reference] = Field((), description="Secrets for pulling the image.")
    service_account_name: ObjectName | None = Field(
        None, description="ServiceAccount of the pods. Default: that of the namespace."
    )
    automount_service_account_token: bool = Field(
        default=False, description="Whether commands can read the token of the ServiceAccount."
    )
    volumes: Annotated[FewOf[Volume], base.unique_by("name")] = Field(
        (), description="Volumes of the pods."
    )
    volume_mounts: Annotated[FewOf[VolumeMount], base.unique_by("mount_path")] = Field(
        (), description="Where volumes are mounted for commands."
    )
    node_selector: Labels = Field({}, description="Labels that a node must have to run a worker.")
    tolerations: FewOf[Toleration] = Field((), description="Tolerations of the worker pods.")
    affinity: Affinity | None = Field(None, description="Rules on which nodes the pods run.")
    priority_class_name: ObjectName | None = Field(
        None, description="PriorityClass of the worker pods."
    )
    labels: Annotated[Labels, AfterValidator(_unreserved)] = Field(
        {}, description="Additional labels of the worker pods."
    )

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        if self.min_replicas > self.max_replicas:
            raise ValueError(
                f"minReplicas {self.min_replicas} is greater than maxReplicas {self.max_replicas}"
            )
        lease, heartbeat, shortest = map(
            formats.format_duration, (self.lease, self.heartbeat, leases.MIN_HEARTBEAT)
        )
        if self.heartbeat < leases.MIN_HEARTBEAT:
            raise ValueError(f"heartbeat {heartbeat} must be at least {shortest}")
        if self.lease < _HEARTBEATS_PER_LEASE * self.heartbeat:
            raise ValueError(f"lease {lease} must be at least twice the heartbeat {heartbeat}")
        return self

    @model_validator(mode="after")
    def _mounts_exist(self) -> Self:
        names = {volume.name for volume in self.volumes}
        for mount in self.volume_mounts:
            if mount.name not in names:
                raise ValueError(
                    f"volumeMounts has '{mount.name}', which is not in volumes; add it there"
                )
        return self


def _check_name(metadata: ObjectMeta) -> ObjectMeta:
    name = metadata.name or ""
    if len(name) > MAX_NAME or "." in name:
        raise ValueError(f"the name of a pool must have at most {MAX_NAME} characters and no '.'")
    return metadata


class WorkerPool(Resource):
    """A named set of identical workers."""

    kind: Literal["WorkerPool"] = Field("WorkerPool", description="Kind of the object: WorkerPool.")
    metadata: Annotated[ObjectMeta, AfterValidator(_check_name)] = Field(
        description="Name, namespace, labels and annotations."
    )
    spec: WorkerPoolSpec = Field(WorkerPoolSpec(), description="The workers of the pool.")
    status: Annotated[WorkerPoolStatus | None, FromSystem] = Field(
        None, description="Current state, written by the controller."
    )
