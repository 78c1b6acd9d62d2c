"""What all models share: strict values, no unknown fields, frozen, camelCase outside.

Base of every model in this package. Python code builds them by attribute name; what a person
wrote goes through `Record.parse`, which knows the outside names alone.
"""

from __future__ import annotations

import functools
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Strict, alias_generators, model_validator
from pydantic_core import PydanticCustomError

LAX: Final = Strict(strict=False)
"""Lets a list become a tuple and a word an enum; what is in the list stays strict."""


def refusal(message: str) -> PydanticCustomError:
    """Make the error of a check whose message is already written for a person."""
    return PydanticCustomError("refused", "{message}", {"message": message})


class Record(BaseModel):
    """One mapping of a manifest."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        alias_generator=alias_generators.to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        # Built on first use: most commands use one kind of three, and some none at all.
        defer_build=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _prune_nulls(cls, data: object) -> object:
        """Take a known field that is null as absent, as the API server does."""
        if not isinstance(data, dict) or None not in data.values():
            return data
        known = field_names(cls)
        return {k: v for k, v in data.items() if v is not None or k not in known}

    @classmethod
    def parse(cls, data: object) -> Self:
        """Check what a person wrote; raises pydantic's ValidationError."""
        return cls.model_validate(data, by_alias=True, by_name=False)

    def as_manifest(self) -> dict[str, Any]:
        """Give it back in its own shape, JSON-ready, with what was set and no default."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)


@functools.cache
def field_names(record: type[Record]) -> frozenset[str]:
    """List the names that a field of `record` goes by, outside and inside."""
    fields = record.__pydantic_fields__
    return frozenset(fields) | frozenset(f.alias for f in fields.values() if f.alias)
