"""The `metadata` of an object, and the fields at the top of every kind.

Fields that the API server adds are accepted and dropped, so that the output of
`kubectl get -o yaml` can be read again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic.json_schema import GenerateJsonSchema

from workron.core import formats
from workron.core.model import base
from workron.core.model.base import GenerateName, Label, LabelKey, LabelValue, ObjectName, Text

API_VERSION: Final = "workron.dev/v1alpha1"
_ANNOTATIONS_BYTES: Final = 256 * 1024
_SERVER_FIELDS: Final = {
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
}


def _within_budget(annotations: dict[str, str]) -> dict[str, str]:
    size = sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items())
    if size > _ANNOTATIONS_BYTES:
        raise ValueError(f"are {size:,} bytes in all; at most {_ANNOTATIONS_BYTES:,} are allowed")
    return annotations


class ObjectMeta(base.Record):
    """Name, namespace, labels and annotations of an object."""

    name: ObjectName | None = Field(
        None, description="Name of the object, unique in its namespace and kind."
    )
    generate_name: GenerateName | None = Field(
        None, description="Prefix of a generated unique name. Used only if name is absent."
    )
    namespace: Label = Field(
        "default", description="Namespace of the object and of its worker pool."
    )
    labels: dict[LabelKey, LabelValue] = Field({}, description="Labels, for selecting objects.")
    annotations: Annotated[dict[LabelKey, Text], AfterValidator(_within_budget)] = Field(
        {}, description="Annotations, kept as written."
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_server_fields(cls, data: object) -> object:
        if not isinstance(data, dict) or _SERVER_FIELDS.isdisjoint(data):
            return data
        return {k: v for k, v in data.items() if k not in _SERVER_FIELDS}

    @model_validator(mode="after")
    def _is_named(self) -> Self:
        if self.name is None and self.generate_name is None:
            raise ValueError("set name or generateName")
        return self


class Resource(base.Record):
    """Base of Job, Workflow and WorkerPool."""

    api_version: Literal["workron.dev/v1alpha1"] = Field(
        API_VERSION, description="Version of the API: workron.dev/v1alpha1."
    )
    metadata: ObjectMeta = Field(description="Name, namespace, labels and annotations.")

    def as_manifest(self) -> dict[str, Any]:
        """Return the object as JSON, with its version and kind even if they are defaults."""
        kind = type(self).__name__
        return {"apiVersion": API_VERSION, "kind": kind} | super().as_manifest()


class _DurationDefaults(GenerateJsonSchema):
    """Writes the default of a duration field as in a manifest, such as 1m30s."""

    def encode_default(self, dft: Any) -> Any:
        """Return the value of `default` in the schema."""
        return (
            formats.format_duration(dft)
            if isinstance(dft, timedelta)
            else super().encode_default(dft)
        )


def json_schema(kind: type[base.Record]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the schema of a record, and by name those of the records that it refers to."""
    schema = kind.model_json_schema(by_alias=True, schema_generator=_DurationDefaults)
    return schema, schema.pop("$defs")
