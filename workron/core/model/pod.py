"""The parts of a pod that a pool may set: secrets, volumes, resources, tolerations.

A curated subset with the names that Kubernetes gives them, so that what is known of pods holds
here. Used by `core.model.pool` alone.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from workron.core import formats
from workron.core.model import base
from workron.core.model.base import (
    EnvName,
    EnvValue,
    Label,
    LabelKey,
    Labels,
    LabelValue,
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
        raise base.invalid("is not a quantity; write it in quotes, like '500m', '2' or '1Gi'")
    if len(text) > _QUANTITY_BYTES or not re.fullmatch(_QUANTITY, text):
        raise base.invalid(
            f"{formats.quoted(text)} is not a quantity; write it like 500m, 2 or 1Gi"
        )
    return text


Quantity = Annotated[str, PlainValidator(_quantity), WithJsonSchema(_QUANTITY_SCHEMA)]
Quantities = Annotated[dict[LabelKey, Quantity], Field(max_length=100)]
Mode = Annotated[int, Field(ge=0, le=0o777)]


class Resources(base.Record):
    """What a worker's pod asks for and may use."""

    requests: Quantities = Field({}, description="What is set aside for the pod.")
    limits: Quantities = Field({}, description="What the pod may not exceed.")


class Reference(base.Record):
    """An object of the pool's namespace."""

    name: ObjectName = Field(description="Its name.")


class OptionalReference(Reference):
    """An object of the pool's namespace that may be allowed to be missing."""

    optional: bool = Field(default=False, description="Whether the pod starts without it.")


class KeyReference(OptionalReference):
    """One key of a Secret or ConfigMap."""

    key: Annotated[Text, Field(min_length=1)] = Field(description="The key in it.")


def has_one_of(holder: base.Record, *names: str) -> None:
    """Refuse a record that does not set exactly one of these fields."""
    given = [name for name in names if getattr(holder, name) is not None]
    if len(given) != 1:
        fields = type(holder).__pydantic_fields__
        raise base.invalid(f"needs exactly one of {', '.join(fields[n].alias or n for n in names)}")


class EnvSource(base.Record):
    """Where the value of one variable comes from."""

    secret_key_ref: KeyReference | None = Field(None, description="A key of a Secret.")
    config_map_key_ref: KeyReference | None = Field(None, description="A key of a ConfigMap.")

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        has_one_of(self, "secret_key_ref", "config_map_key_ref")
        return self


class PoolEnvVar(base.Record):
    """One variable in the environment of every command of the pool."""

    name: EnvName = Field(description="Name; those that begin with WORKRON_ are reserved.")
    value: EnvValue | None = Field(None, description="Value, as written. This or valueFrom.")
    value_from: EnvSource | None = Field(None, description="Where it comes from. This or value.")

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        has_one_of(self, "value", "value_from")
        return self


class EnvFrom(base.Record):
    """All keys of a Secret or ConfigMap as variables."""

    prefix: Annotated[EnvName | None, Field(description="Put before each key.")] = None
    secret_ref: OptionalReference | None = Field(None, description="The Secret.")
    config_map_ref: OptionalReference | None = Field(None, description="The ConfigMap.")

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        has_one_of(self, "secret_ref", "config_map_ref")
        return self


class Toleration(base.Record):
    """A taint of nodes that the pool's workers put up with."""

    key: LabelKey | None = Field(None, description="Key of the taint; absent: every key.")
    operator: Literal["Exists", "Equal"] = Field("Equal", description="Exists ignores the value.")
    value: LabelValue | None = Field(None, description="Value of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="Effect of the taint; absent: every effect."
    )
    toleration_seconds: Seconds | None = Field(
        None, description="For NoExecute: how long the taint is put up with."
    )

    @model_validator(mode="after")
    def _fits_operator(self) -> Self:
        if self.operator == "Exists" and self.value is not None:
            raise base.invalid("operator Exists takes no value")
        if self.operator == "Equal" and self.key is None:
            raise base.invalid("needs a key; for every key write operator: Exists")
        return self


class KeyToPath(base.Record):
    """One key of a Secret or ConfigMap as a file."""

    key: Text = Field(description="The key.")
    path: Path = Field(description="Path of the file, below the mount.")
    mode: Mode | None = Field(None, description="Permission bits of the file.")


Items = Annotated[tuple[KeyToPath, ...], base.LAX, Field(max_length=1000)]


class _Files(base.Record):
    items: Items = Field((), description="Only these keys, if given.")
    default_mode: Mode | None = Field(None, description="Permission bits of the files.")
    optional: bool = Field(default=False, description="Whether the pod starts without it.")


class SecretVolume(_Files):
    """The keys of a Secret as files."""

    secret_name: ObjectName = Field(description="Name of the Secret.")


class ConfigMapVolume(_Files):
    """The keys of a ConfigMap as files."""

    name: ObjectName = Field(description="Name of the ConfigMap.")


class EmptyDirVolume(base.Record):
    """A directory of the pod's own, gone with it."""

    medium: Literal["", "Memory"] = Field("", description="Memory keeps it in RAM.")
    size_limit: Quantity | None = Field(None, description="How large it may grow.")


class PersistentVolumeClaimVolume(base.Record):
    """A PersistentVolumeClaim."""

    claim_name: ObjectName = Field(description="Name of the PersistentVolumeClaim.")
    read_only: bool = Field(default=False, description="Whether it is mounted read-only.")


class Volume(base.Record):
    """One volume of a worker's pod."""

    name: Label = Field(description="Name, for volumeMounts.")
    secret: SecretVolume | None = Field(None, description="The keys of a Secret.")
    config_map: ConfigMapVolume | None = Field(None, description="The keys of a ConfigMap.")
    empty_dir: EmptyDirVolume | None = Field(None, description="A directory of the pod's own.")
    persistent_volume_claim: PersistentVolumeClaimVolume | None = Field(
        None, description="A claim."
    )

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        has_one_of(self, "secret", "config_map", "empty_dir", "persistent_volume_claim")
        return self


class VolumeMount(base.Record):
    """Where the commands of the pool see a volume."""

    name: Label = Field(description="Name of the volume.")
    mount_path: Path = Field(description="Absolute path of the mount.")
    sub_path: Path | None = Field(None, description="Only this path of the volume.")
    read_only: bool = Field(default=False, description="Whether commands may only read.")

    @model_validator(mode="after")
    def _is_absolute(self) -> Self:
        if not self.mount_path.startswith("/") or ":" in self.mount_path:
            raise base.invalid("mountPath must begin with '/' and have no ':'")
        return self


_Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]  # codespell:ignore notin
_FEW = Field(max_length=100)
Values = Annotated[tuple[LabelValue, ...], base.LAX, _FEW]
Weight = Annotated[int, Field(ge=1, le=100)]


class NodeRequirement(base.Record):
    """A demand on one label, or one field, of a node."""

    key: LabelKey = Field(description="Key of the label.")
    operator: Literal[_Operator, "Gt", "Lt"] = Field(description="How its value is compared.")
    values: Values = Field((), description="What it is compared with.")


NodeRequirements = Annotated[tuple[NodeRequirement, ...], base.LAX, _FEW]


class NodeTerm(base.Record):
    """Demands on a node that must all hold."""

    match_expressions: NodeRequirements = Field((), description="Demands on its labels.")
    match_fields: NodeRequirements = Field((), description="Demands on its fields.")


class NodeSelector(base.Record):
    """Nodes for which one of the terms holds."""

    node_selector_terms: Annotated[
        tuple[NodeTerm, ...], base.LAX, Field(min_length=1, max_length=100)
    ] = Field(description="The terms.")


class PreferredNode(base.Record):
    """A wish for nodes."""

    weight: Weight = Field(description="How strong the wish is, 1 to 100.")
    preference: NodeTerm = Field(description="The nodes.")


class NodeAffinity(base.Record):
    """Demands and wishes for nodes."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = Field(
        None, description="Nodes outside of this are out of question."
    )
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredNode, ...], base.LAX, _FEW
    ] = Field((), description="Nodes that are better than others.")


class LabelRequirement(base.Record):
    """A demand on one label of an object."""

    key: LabelKey = Field(description="Key of the label.")
    operator: _Operator = Field(description="How its value is compared.")
    values: Values = Field((), description="What it is compared with.")


class LabelSelector(base.Record):
    """Objects that meet all of these demands."""

    match_labels: Labels = Field({}, description="Labels that they have.")
    match_expressions: Annotated[tuple[LabelRequirement, ...], base.LAX, _FEW] = Field(
        (), description="Demands on their labels."
    )


class PodTerm(base.Record):
    """Pods, and how near is near."""

    topology_key: LabelKey = Field(description="Nodes with one value of this label are near.")
    label_selector: LabelSelector | None = Field(None, description="Which pods.")
    namespaces: Annotated[tuple[Label, ...], base.LAX, _FEW] = Field(
        (), description="In which namespaces; default: the pool's."
    )
    namespace_selector: LabelSelector | None = Field(
        None, description="In which namespaces, by label."
    )


class PreferredPod(base.Record):
    """A wish for the nearness, or the distance, of pods."""

    weight: Weight = Field(description="How strong the wish is, 1 to 100.")
    pod_affinity_term: PodTerm = Field(description="The pods.")


class PodAffinity(base.Record):
    """Demands and wishes for the nearness, or the distance, of pods."""

    required_during_scheduling_ignored_during_execution: Annotated[
        tuple[PodTerm, ...], base.LAX, _FEW
    ] = Field((), description="Nodes outside of this are out of question.")
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredPod, ...], base.LAX, _FEW
    ] = Field((), description="Nodes that are better than others.")


class Affinity(base.Record):
    """Where workers are put."""

    node_affinity: NodeAffinity | None = Field(None, description="By labels of nodes.")
    pod_affinity: PodAffinity | None = Field(None, description="Near these pods.")
    pod_anti_affinity: PodAffinity | None = Field(None, description="Away from these pods.")
