"""The `metadata` of an object, and what is at the top of each of the three kinds.

What the API server adds to an object is accepted and dropped, so that the output of
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
_SERVER_FIELDS: Final = frozenset(
    {
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
)


def _within_budget(annotations: dict[str, str]) -> dict[str, str]:
    size = sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items())
    if size > _ANNOTATIONS_BYTES:
        raise base.invalid(f"are {size:,} bytes in all; at most {_ANNOTATIONS_BYTES:,} are allowed")
    return annotations


class ObjectMeta(base.Record):
    """Who the object is."""

    name: ObjectName | None = Field(None, description="Name, unique in its namespace and kind.")
    generate_name: GenerateName | None = Field(
        None, description="Start of a name that is made unique; used only if name is absent."
    )
    namespace: Label = Field("default", description="Namespace of the object and of its pool.")
    labels: dict[LabelKey, LabelValue] = Field({}, description="Labels, to select objects by.")
    annotations: Annotated[dict[LabelKey, Text], AfterValidator(_within_budget)] = Field(
        {}, description="Notes of people and tools, given back as they came."
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
            raise base.invalid("needs a name, or a generateName")
        return self


class Resource(base.Record):
    """What Job, Workflow and WorkerPool have in common."""

    api_version: Literal["workron.dev/v1alpha1"] = Field(
        API_VERSION, description="Version of this form; always workron.dev/v1alpha1."
    )
    metadata: ObjectMeta = Field(description="Name, namespace, labels, annotations.")

    def as_manifest(self) -> dict[str, Any]:
        """Give it back in its own shape; also where Python code left the kind to its default."""
        kind = type(self).__name__
        return {"apiVersion": API_VERSION, "kind": kind} | super().as_manifest()


class _InOurWords(GenerateJsonSchema):
    """Writes a default that is a duration as a person would."""

    def encode_default(self, dft: Any) -> Any:
        """Give what stands under `default`."""
        return (
            formats.format_duration(dft)
            if isinstance(dft, timedelta)
            else super().encode_default(dft)
        )


def json_schema(kind: type[Resource]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Give the schema of a kind, and those of the records that it refers to, by their names."""
    schema = kind.model_json_schema(by_alias=True, schema_generator=_InOurWords)
    return schema, schema.pop("$defs")
