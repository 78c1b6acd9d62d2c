"""The kind WorkerPool: a named set of equal workers.

A curated subset of a pod and no pod template, so that what the system needs of its pods cannot
be undone by accident.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from workron.core import formats
from workron.core import lease as leases
from workron.core.formats import TextFormat
from workron.core.model import base
from workron.core.model.base import Fits, Labels, ObjectName
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
"""A pod's name and a label's value hold it together with a revision."""

_BEATS_A_LEASE: Final = 2
_OWN_PREFIX: Final = "workron.dev/"
_FEW: Final = Field(max_length=100)
_MAX_WORKERS: Final = 10_000

Image = Annotated[
    str, Fits(TextFormat("the reference of an image, like team/tools:1.4", 512, r"[^\s\"']+"))
]


def _unreserved(labels: dict[str, str]) -> dict[str, str]:
    for key in labels:
        if key.startswith(_OWN_PREFIX):
            raise base.invalid(f"'{key}' is reserved: {_OWN_PREFIX} labels are set by the system")
    return labels


class WorkerPoolSpec(base.Record):
    """How many workers, of what image, in what kind of pod."""

    image: Image | None = Field(
        None, description="Image in which commands run; default: that of this installation."
    )
    slots: int = Field(4, ge=1, le=1000, description="How many jobs one worker runs at a time.")
    min_replicas: int = Field(0, ge=0, le=_MAX_WORKERS, description="No fewer workers than these.")
    max_replicas: int = Field(10, ge=0, le=_MAX_WORKERS, description="No more workers than these.")
    replicas: int | None = Field(
        None,
        ge=0,
        le=_MAX_WORKERS,
        description="Exactly so many workers; the queue's depth is not looked at.",
    )
    resources: Resources = Field(Resources(), description="Of the container commands run in.")
    lease: base.PositiveDuration = Field(
        timedelta(seconds=10), description="How long claims outlive a worker's last heartbeat."
    )
    heartbeat: base.PositiveDuration = Field(
        timedelta(seconds=2),
        description="How often a worker proves that it lives; four times a lease at least.",
    )
    drain_timeout: base.Duration = Field(
        timedelta(minutes=10),
        description="How long a worker that is taken away may finish what it runs.",
    )
    env: Annotated[
        tuple[PoolEnvVar, ...],
        base.LAX,
        Field(max_length=1000),
        base.unique_by("name"),
    ] = Field((), description="Environment of all commands of the pool.")
    env_from: Annotated[tuple[EnvFrom, ...], base.LAX, _FEW] = Field(
        (), description="Secrets and ConfigMaps whose keys become variables."
    )
    image_pull_secrets: Annotated[tuple[Reference, ...], base.LAX, _FEW] = Field(
        (), description="Secrets with which the image is pulled."
    )
    service_account_name: ObjectName | None = Field(
        None, description="ServiceAccount of the pods; default: that of the namespace."
    )
    automount_service_account_token: bool = Field(
        default=False, description="Whether commands see the token of the ServiceAccount."
    )
    volumes: Annotated[tuple[Volume, ...], base.LAX, _FEW, base.unique_by("name")] = Field(
        (), description="Volumes of the pods."
    )
    volume_mounts: Annotated[
        tuple[VolumeMount, ...], base.LAX, _FEW, base.unique_by("mount_path")
    ] = Field((), description="Where commands see them.")
    node_selector: Labels = Field({}, description="Labels that a node must have.")
    tolerations: Annotated[tuple[Toleration, ...], base.LAX, _FEW] = Field(
        (), description="Taints of nodes that are put up with."
    )
    affinity: Affinity | None = Field(None, description="Where the pods are put.")
    priority_class_name: ObjectName | None = Field(None, description="PriorityClass of the pods.")
    labels: Annotated[Labels, AfterValidator(_unreserved)] = Field(
        {}, description="Further labels of the pods."
    )

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        if self.min_replicas > self.max_replicas:
            raise base.invalid(
                f"minReplicas {self.min_replicas} is more than maxReplicas {self.max_replicas}"
            )
        if self.heartbeat < leases.MIN_HEARTBEAT:
            beat, shortest = map(formats.format_duration, (self.heartbeat, leases.MIN_HEARTBEAT))
            raise base.invalid(f"heartbeat {beat} must be at least {shortest}")
        if self.lease < _BEATS_A_LEASE * self.heartbeat:
            beat, lease = (
                formats.format_duration(self.heartbeat),
                formats.format_duration(self.lease),
            )
            raise base.invalid(f"lease {lease} must be at least twice the heartbeat {beat}")
        return self

    @model_validator(mode="after")
    def _mounts_exist(self) -> Self:
        names = {volume.name for volume in self.volumes}
        for mount in self.volume_mounts:
            if mount.name not in names:
                raise base.invalid(f"volumeMounts names '{mount.name}', which is not in volumes")
        return self


def _short(metadata: ObjectMeta) -> ObjectMeta:
    name = metadata.name or ""
    if len(name) > MAX_NAME or "." in name:
        raise base.invalid(f"the name of a pool has at most {MAX_NAME} characters and no '.'")
    return metadata


class WorkerPool(Resource):
    """A named set of equal workers."""

    kind: Literal["WorkerPool"] = Field("WorkerPool", description="Always WorkerPool.")
    metadata: Annotated[ObjectMeta, AfterValidator(_short)] = Field(
        description="Name, namespace, labels, annotations."
    )
    spec: WorkerPoolSpec = Field(WorkerPoolSpec(), description="What its workers are like.")
    status: Annotated[WorkerPoolStatus | None, FromSystem] = Field(
        None, description="How it stands; written by the system."
    )
