"""The fields of a pod that a WorkerPool can set: secrets, volumes, resources, scheduling.

They are a subset of the Kubernetes API, with its names and meanings.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from workron.core import formats
from workron.core.model import base
from workron.core.model.base import (
    EnvName,
    EnvValue,
    FewOf,
    Label,
    LabelKey,
    Labels,
    LabelValue,
    ListOf,
    ObjectName,
    Path,
    Seconds,
    Text,
)

_QUANTITY: Final = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?"
_QUANTITY_BYTES: Final = 40
_QUANTITY_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "minimum": 0,
    "maxLength": _QUANTITY_BYTES,
    "pattern": f"^({_QUANTITY})$",
    "x-kubernetes-int-or-string": True,
}


def _quantity(value: object) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        advice = "write it in quotes, such as '500m', '2' or '1Gi'"
        raise ValueError(f"is not a quantity; {advice}")  # noqa: TRY004 - pydantic takes one type
    if len(text) > _QUANTITY_BYTES or not re.fullmatch(_QUANTITY, text):
        raise ValueError(f"{formats.quoted(text)} is not a quantity; write it as 500m, 2 or 1Gi")
    return text


Quantity = Annotated[str, PlainValidator(_quantity), WithJsonSchema(_QUANTITY_SCHEMA)]
Quantities = Annotated[dict[LabelKey, Quantity], Field(max_length=100)]
Mode = Annotated[int, Field(ge=0, le=0o777)]


class Resources(base.Record):
    """Resource requests and limits of a worker pod."""

    requests: Quantities = Field({}, description="Resources that are reserved for the pod.")
    limits: Quantities = Field({}, description="Resources that the pod must not exceed.")


class Reference(base.Record):
    """A reference to an object in the namespace of the pool."""

    name: ObjectName = Field(description="Name of the object.")


class OptionalReference(Reference):
    """A reference to an object in the namespace of the pool that may be optional."""

    optional: bool = Field(
        default=False, description="Whether the pod may start if the object does not exist."
    )


class KeyReference(OptionalReference):
    """A key of a Secret or ConfigMap."""

    key: Annotated[Text, Field(min_length=1)] = Field(description="Name of the key.")


class OneOf(base.Record):
    """A record that sets exactly one of some fields."""

    one_of: ClassVar[tuple[str, ...]]

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if sum(getattr(self, name) is not None for name in self.one_of) != 1:
            raise ValueError(f"set exactly one of {', '.join(map(to_camel, self.one_of))}")
        return self


class EnvSource(OneOf):
    """Source of the value of an environment variable."""

    one_of = ("secret_key_ref", "config_map_key_ref")
    secret_key_ref: KeyReference | None = Field(None, description="A key of a Secret.")
    config_map_key_ref: KeyReference | None = Field(None, description="A key of a ConfigMap.")


class PoolEnvVar(OneOf):
    """An environment variable of every command of the pool."""

    one_of = ("value", "value_from")
    name: EnvName = Field(
        description="Name of the variable. Names that begin with WORKRON_ are reserved."
    )
    value: EnvValue | None = Field(
        None, description="Value, used as written. Set either value or valueFrom."
    )
    value_from: EnvSource | None = Field(
        None, description="Source of the value. Set either value or valueFrom."
    )


class EnvFrom(OneOf):
    """All keys of a Secret or ConfigMap as environment variables."""

    one_of = ("secret_ref", "config_map_ref")
    prefix: Annotated[EnvName | None, Field(description="Prefix of each variable name.")] = None
    secret_ref: OptionalReference | None = Field(None, description="The Secret.")
    config_map_ref: OptionalReference | None = Field(None, description="The ConfigMap.")


class Toleration(base.Record):
    """A toleration of the worker pods for a taint of nodes."""

    key: LabelKey | None = Field(
        None, description="Key of the taint. If absent, every key matches."
    )
    operator: Literal["Exists", "Equal"] = Field(
        "Equal", description="How the taint is compared. Exists ignores the value."
    )
    value: LabelValue | None = Field(None, description="Value of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="Effect of the taint. If absent, every effect matches."
    )
    toleration_seconds: Seconds | None = Field(
        None, description="For NoExecute: how long a pod stays on a node with this taint."
    )

    @model_validator(mode="after")
    def _fits_operator(self) -> Self:
        if self.operator == "Exists" and self.value is not None:
            raise ValueError("operator Exists does not take a value; remove it")
        if self.operator == "Equal" and self.key is None:
            raise ValueError("set a key, or operator: Exists for every key")
        return self


class KeyToPath(base.Record):
    """A key of a Secret or ConfigMap as a file."""

    key: Text = Field(description="Name of the key.")
    path: Path = Field(description="Path of the file, relative to the mount.")
    mode: Mode | None = Field(None, description="Permission bits of the file.")


class _Files(base.Record):
    items: ListOf[KeyToPath] = Field(
        (), max_length=1000, description="If set, only these keys become files."
    )
    default_mode: Mode | None = Field(None, description="Permission bits of the files.")
    optional: bool = Field(
        default=False, description="Whether the pod may start if the object does not exist."
    )


class SecretVolume(_Files):
    """The keys of a Secret as files."""

    secret_name: ObjectName = Field(description="Name of the Secret.")


class ConfigMapVolume(_Files):
    """The keys of a ConfigMap as files."""

    name: ObjectName = Field(description="Name of the ConfigMap.")


class EmptyDirVolume(base.Record):
    """An empty directory that is deleted with the pod."""

    medium: Literal["", "Memory"] = Field(
        "", description="Where it is stored. Memory keeps it in RAM."
    )
    size_limit: Quantity | None = Field(None, description="Size limit of the directory.")


class PersistentVolumeClaimVolume(base.Record):
    """A PersistentVolumeClaim as a volume."""

    claim_name: ObjectName = Field(description="Name of the PersistentVolumeClaim.")
    read_only: bool = Field(default=False, description="Whether it is mounted read-only.")


class Volume(OneOf):
    """A volume of the worker pods."""

    one_of = ("secret", "config_map", "empty_dir", "persistent_volume_claim")
    name: Label = Field(description="Name of the volume, for volumeMounts.")
    secret: SecretVolume | None = Field(None, description="The keys of a Secret.")
    config_map: ConfigMapVolume | None = Field(None, description="The keys of a ConfigMap.")
    empty_dir: EmptyDirVolume | None = Field(
        None, description="A directory that is empty when the pod starts."
    )
    persistent_volume_claim: PersistentVolumeClaimVolume | None = Field(
        None, description="A PersistentVolumeClaim of the namespace."
    )


class VolumeMount(base.Record):
    """Where a volume is mounted for commands."""

    name: Label = Field(description="Name of the volume.")
    mount_path: Path = Field(description="Absolute path of the mount.")
    sub_path: Path | None = Field(
        None, description="Path in the volume to mount. Default: all of it."
    )
    read_only: bool = Field(default=False, description="Whether the mount is read-only.")

    @model_validator(mode="after")
    def _is_absolute(self) -> Self:
        if not self.mount_path.startswith("/") or ":" in self.mount_path:
            raise ValueError("mountPath must begin with '/' and must not contain ':'")
        return self


_Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]  # codespell:ignore notin
Weight = Annotated[int, Field(ge=1, le=100)]


class NodeRequirement(base.Record):
    """A requirement on one label or field of a node."""

    key: LabelKey = Field(description="Key of the label or field.")
    operator: Literal[_Operator, "Gt", "Lt"] = Field(description="How its value is compared.")
    values: FewOf[LabelValue] = Field((), description="Values to compare with.")


class NodeTerm(base.Record):
    """Requirements on a node that must all be met."""

    match_expressions: FewOf[NodeRequirement] = Field((), description="Requirements on its labels.")
    match_fields: FewOf[NodeRequirement] = Field((), description="Requirements on its fields.")


class NodeSelector(base.Record):
    """Nodes that match at least one of the terms."""

    node_selector_terms: FewOf[NodeTerm] = Field(
        min_length=1, description="Terms, of which one must match."
    )


class PreferredNode(base.Record):
    """A preference for nodes."""

    weight: Weight = Field(description="Weight of the preference, from 1 to 100.")
    preference: NodeTerm = Field(description="The preferred nodes.")


class NodeAffinity(base.Record):
    """Required and preferred nodes."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = Field(
        None, description="Required: the pods are scheduled nowhere else."
    )
    preferred_during_scheduling_ignored_during_execution: FewOf[PreferredNode] = Field(
        (), description="Preferred, if possible."
    )


class LabelRequirement(base.Record):
    """A requirement on one label of an object."""

    key: LabelKey = Field(description="Key of the label or field.")
    operator: _Operator = Field(description="How its value is compared.")
    values: FewOf[LabelValue] = Field((), description="Values to compare with.")


class LabelSelector(base.Record):
    """Objects that meet all of these requirements."""

    match_labels: Labels = Field({}, description="Labels that they must have.")
    match_expressions: FewOf[LabelRequirement] = Field(
        (), description="Requirements on their labels."
    )


class PodTerm(base.Record):
    """Pods, and the topology in which they count as near."""

    topology_key: LabelKey = Field(
        description="Nodes with the same value of this label are near each other."
    )
    label_selector: LabelSelector | None = Field(None, description="Selects the pods by label.")
    namespaces: FewOf[Label] = Field(
        (), description="Namespaces of the pods. Default: that of the pool."
    )
    namespace_selector: LabelSelector | None = Field(
        None, description="Namespaces of the pods, by label."
    )


class PreferredPod(base.Record):
    """A preference for being near pods, or away from them."""

    weight: Weight = Field(description="Weight of the preference, from 1 to 100.")
    pod_affinity_term: PodTerm = Field(description="The pods, and the topology.")


class PodAffinity(base.Record):
    """Required and preferred pods to be near, or to be away from."""

    required_during_scheduling_ignored_during_execution: FewOf[PodTerm] = Field(
        (), description="Required: the pods are scheduled nowhere else."
    )
    preferred_during_scheduling_ignored_during_execution: FewOf[PreferredPod] = Field(
        (), description="Preferred, if possible."
    )


class Affinity(base.Record):
    """Affinity of the worker pods."""

    node_affinity: NodeAffinity | None = Field(None, description="Nodes by their labels.")
    pod_affinity: PodAffinity | None = Field(None, description="Near these pods.")
    pod_anti_affinity: PodAffinity | None = Field(None, description="Away from these pods.")
