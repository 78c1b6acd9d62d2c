"""The JSON schema of a kind, in the words of a manifest.

Called by `workron_controller.crds`, which makes the definitions of a cluster of it, and by what
renders the pages of the reference.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

from workron.core import duration

if TYPE_CHECKING:
    from workron.core.model.meta import Resource


class _InOurWords(GenerateJsonSchema):
    """Writes a default that is a duration as a person would."""

    def encode_default(self, dft: Any) -> Any:
        """Give what stands under `default`."""
        return duration.render(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def of(kind: type[Resource]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Give the schema of a kind, and those of the records that it refers to, by their names."""
    schema = kind.model_json_schema(by_alias=True, schema_generator=_InOurWords)
    return schema, schema.pop("$defs")
