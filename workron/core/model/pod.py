"""The parts of a pod that a pool may set: secrets, volumes, resources, tolerations.

A curated subset with the names that Kubernetes gives them, so that what is known of pods holds
here. Used by `core.model.pool` alone.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from workron.core import form
from workron.core.model import record
from workron.core.model.scalar import (
    EnvName,
    EnvValue,
    LabelKey,
    LabelValue,
    ObjectName,
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
        raise record.refusal("is not a quantity; write it in quotes, like '500m', '2' or '1Gi'")
    if len(text) > _QUANTITY_BYTES or not re.fullmatch(_QUANTITY, text):
        raise record.refusal(f"{form.shown(text)} is not a quantity; write it like 500m, 2 or 1Gi")
    return text


Quantity = Annotated[str, PlainValidator(_quantity), WithJsonSchema(_QUANTITY_SCHEMA)]
Quantities = Annotated[dict[LabelKey, Quantity], Field(max_length=100)]
Mode = Annotated[int, Field(ge=0, le=0o777)]


class Resources(record.Record):
    """What a worker's pod asks for and may use."""

    requests: Quantities = Field({}, description="What is set aside for the pod.")
    limits: Quantities = Field({}, description="What the pod may not exceed.")


class Reference(record.Record):
    """An object of the pool's namespace."""

    name: ObjectName = Field(description="Its name.")


class OptionalReference(Reference):
    """An object of the pool's namespace that may be allowed to be missing."""

    optional: bool = Field(default=False, description="Whether the pod starts without it.")


class KeyReference(OptionalReference):
    """One key of a Secret or ConfigMap."""

    key: Annotated[Text, Field(min_length=1)] = Field(description="The key in it.")


def has_one_of(holder: record.Record, *names: str) -> None:
    """Refuse a record that does not set exactly one of these fields."""
    given = [name for name in names if getattr(holder, name) is not None]
    if len(given) != 1:
        fields = type(holder).__pydantic_fields__
        raise record.refusal(
            f"needs exactly one of {', '.join(fields[n].alias or n for n in names)}"
        )


class EnvSource(record.Record):
    """Where the value of one variable comes from."""

    secret_key_ref: KeyReference | None = Field(None, description="A key of a Secret.")
    config_map_key_ref: KeyReference | None = Field(None, description="A key of a ConfigMap.")

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        has_one_of(self, "secret_key_ref", "config_map_key_ref")
        return self


class PoolEnvVar(record.Record):
    """One variable in the environment of every command of the pool."""

    name: EnvName = Field(description="Name; those that begin with WORKRON_ are reserved.")
    value: EnvValue | None = Field(None, description="Value, as written. This or valueFrom.")
    value_from: EnvSource | None = Field(None, description="Where it comes from. This or value.")

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        has_one_of(self, "value", "value_from")
        return self


class EnvFrom(record.Record):
    """All keys of a Secret or ConfigMap as variables."""

    prefix: Annotated[EnvName | None, Field(description="Put before each key.")] = None
    secret_ref: OptionalReference | None = Field(None, description="The Secret.")
    config_map_ref: OptionalReference | None = Field(None, description="The ConfigMap.")

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        has_one_of(self, "secret_ref", "config_map_ref")
        return self


class Toleration(record.Record):
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
            raise record.refusal("operator Exists takes no value")
        if self.operator == "Equal" and self.key is None:
            raise record.refusal("needs a key; for every key write operator: Exists")
        return self
