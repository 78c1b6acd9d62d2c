"""Volumes that the workers of a pool mount: of four kinds, and no host paths."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from workron.core.model import record
from workron.core.model.pod import Mode, Quantity, has_one_of
from workron.core.model.scalar import Label, ObjectName, Path, Text


class KeyToPath(record.Record):
    """One key of a Secret or ConfigMap as a file."""

    key: Text = Field(description="The key.")
    path: Path = Field(description="Path of the file, below the mount.")
    mode: Mode | None = Field(None, description="Permission bits of the file.")


Items = Annotated[tuple[KeyToPath, ...], record.LAX, Field(max_length=1000)]


class _Files(record.Record):
    items: Items = Field((), description="Only these keys, if given.")
    default_mode: Mode | None = Field(None, description="Permission bits of the files.")
    optional: bool = Field(default=False, description="Whether the pod starts without it.")


class SecretVolume(_Files):
    """The keys of a Secret as files."""

    secret_name: ObjectName = Field(description="Name of the Secret.")


class ConfigMapVolume(_Files):
    """The keys of a ConfigMap as files."""

    name: ObjectName = Field(description="Name of the ConfigMap.")


class EmptyDirVolume(record.Record):
    """A directory of the pod's own, gone with it."""

    medium: Literal["", "Memory"] = Field("", description="Memory keeps it in RAM.")
    size_limit: Quantity | None = Field(None, description="How large it may grow.")


class ClaimVolume(record.Record):
    """A PersistentVolumeClaim."""

    claim_name: ObjectName = Field(description="Name of the PersistentVolumeClaim.")
    read_only: bool = Field(default=False, description="Whether it is mounted read-only.")


class Volume(record.Record):
    """One volume of a worker's pod."""

    name: Label = Field(description="Name, for volumeMounts.")
    secret: SecretVolume | None = Field(None, description="The keys of a Secret.")
    config_map: ConfigMapVolume | None = Field(None, description="The keys of a ConfigMap.")
    empty_dir: EmptyDirVolume | None = Field(None, description="A directory of the pod's own.")
    persistent_volume_claim: ClaimVolume | None = Field(None, description="A claim.")

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        has_one_of(self, "secret", "config_map", "empty_dir", "persistent_volume_claim")
        return self


class VolumeMount(record.Record):
    """Where the commands of the pool see a volume."""

    name: Label = Field(description="Name of the volume.")
    mount_path: Path = Field(description="Absolute path of the mount.")
    sub_path: Path | None = Field(None, description="Only this path of the volume.")
    read_only: bool = Field(default=False, description="Whether commands may only read.")

    @model_validator(mode="after")
    def _is_absolute(self) -> Self:
        if not self.mount_path.startswith("/") or ":" in self.mount_path:
            raise record.refusal("mountPath must begin with '/' and have no ':'")
        return self
