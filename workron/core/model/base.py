"""The base class of all models, and the types of their fields.

Models are strict and frozen and refuse unknown fields. Manifests have camelCase names and are read
by `Record.parse`; Python code uses attribute names.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    WithJsonSchema,
    alias_generators,
    model_validator,
)
from pydantic_core import core_schema

from workron.core import formats, jobspec
from workron.core.formats import TextFormat

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue


LAX: Final = Strict(strict=False)
"""Accepts a list for a tuple and a text for an enum; the items of the list stay strict."""

_T = TypeVar("_T")
ListOf = Annotated[tuple[_T, ...], LAX]
FewOf = Annotated[tuple[_T, ...], LAX, Field(max_length=100)]


class Record(BaseModel):
    """A mapping in a manifest."""

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
        """Treat a known field that is null as absent, as the API server does."""
        if not isinstance(data, dict) or None not in data.values():
            return data
        known = field_names(cls)
        return {k: v for k, v in data.items() if v is not None or k not in known}

    @classmethod
    def parse(cls, data: object) -> Self:
        """Read a mapping of a manifest; raises pydantic's ValidationError."""
        return cls.model_validate(data, by_alias=True, by_name=False)

    def as_manifest(self) -> dict[str, Any]:
        """Return the fields that were set, as JSON with manifest names and without defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)


@functools.cache
def field_names(record: type[Record]) -> frozenset[str]:
    """Return all field names of `record`, in manifests and in Python."""
    fields = record.__pydantic_fields__
    return frozenset(fields) | frozenset(f.alias for f in fields.values() if f.alias)


def unique_by(*attributes: str) -> AfterValidator:
    """Refuse a list of records two of which have the same `attributes`; the last is quoted."""

    def check(records: tuple[Any, ...]) -> tuple[Any, ...]:
        names = [tuple(getattr(record, name) for name in attributes) for record in records]
        if len(set(names)) < len(names):
            (*kind, name), times = Counter(names).most_common(1)[0]
            shown = " ".join([*kind, formats.quoted(name)])
            raise ValueError(f"{shown} is given {times} times; give it once")
        return records

    return AfterValidator(check)


@dataclass(frozen=True, slots=True)
class Format:
    """Lets pydantic check the format of a string."""

    form: TextFormat

    def check(self, value: str) -> str:
        """Return the value; raises a validation error if it has another format."""
        if problem := self.form.problem(value):
            raise ValueError(problem)
        return value

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Check after pydantic has checked that it is a string."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Add the same bounds to the JSON schema."""
        bounds: dict[str, Any] = {"maxLength": self.form.limit}
        if self.form.pattern is not None:
            bounds["pattern"] = f"^({self.form.pattern})$"
        return handler(schema) | bounds


_SUBDOMAIN: Final = rf"{formats.LABEL_PATTERN}(\.{formats.LABEL_PATTERN})*"
_QUALIFIED: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"


_OBJECT_NAME: Final = TextFormat(
    "a name: lowercase letters, digits, '-' and '.', a letter or digit at both ends",
    253,
    _SUBDOMAIN,
)
ObjectName = Annotated[str, Format(_OBJECT_NAME)]
_GENERATE_NAME: Final = TextFormat(
    "a prefix of a name: lowercase letters, digits, '-' and '.', a letter or digit first",
    248,
    rf"({formats.LABEL_PATTERN}\.)*[a-z0-9][-a-z0-9]*",
)
GenerateName = Annotated[str, Format(_GENERATE_NAME)]
Label = Annotated[str, Format(formats.LABEL)]
PoolName = Annotated[str, Format(formats.POOL_NAME)]

_LABEL_KEY: Final = TextFormat(
    "a label's key: up to 63 letters, digits, '-', '_' or '.', after an optional 'prefix/'",
    317,
    rf"({_SUBDOMAIN}/)?{_QUALIFIED}",
)
LabelKey = Annotated[str, Format(_LABEL_KEY)]
_LABEL_VALUE: Final = TextFormat(
    "a label's value: letters, digits, '-', '_' or '.', a letter or digit at both ends",
    63,
    rf"({_QUALIFIED})?",
)
LabelValue = Annotated[str, Format(_LABEL_VALUE)]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=100)]
"""Labels of pods and nodes; the API server limits those of the object itself."""

EnvName = Annotated[str, Format(formats.ENV_NAME)]
EnvValue = Annotated[str, Format(formats.ENV_VALUE)]

Argument = Annotated[str, Format(formats.ARGUMENT)]
Command = Annotated[str, Format(formats.COMMAND)]
Path = Annotated[str, Format(formats.PATH)]
Text = Annotated[str, Format(TextFormat("a text", 256 * 1024))]

Priority = Annotated[int, Field(ge=-1000, le=1000)]
Attempts = Annotated[int, Field(**jobspec.ATTEMPTS)]
ExitCode = Annotated[int, Field(**jobspec.EXIT_CODE)]
Seconds = Annotated[int, Field(ge=0, le=315_360_000)]
"""At most ten years."""


def _read(value: object) -> timedelta:
    if not isinstance(value, timedelta):
        return formats.read_duration(value)
    if not timedelta(0) <= value <= formats.MAX_DURATION or value % timedelta(milliseconds=1):
        raise ValueError(f"{value} is not a number of milliseconds up to ten years")
    return value


_SCHEMA: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": f"^{formats.DURATION_PATTERN}$",
    "minLength": 2,
    "maxLength": formats.MAX_DURATION_CHARACTERS,
}

Duration = Annotated[
    timedelta,
    BeforeValidator(_read),
    PlainSerializer(formats.format_duration),
    WithJsonSchema(_SCHEMA),
]
PositiveDuration = Annotated[Duration, AfterValidator(formats.require_positive)]


_TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])"
)
"""Capital letters and a valid zone. An API server accepts other forms, but then rejects every
update of the object and of its status, since its validation rules cannot read such a time."""
_EXAMPLE: Final = "write it as 2026-01-31T08:00:00Z"


def parse_timestamp(text: str) -> datetime:
    """Read an RFC 3339 time with a zone; raises a validation error."""
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError(f"{formats.quoted(text)} is not a time with date and zone; {_EXAMPLE}")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{formats.quoted(text)} is not on the calendar; {_EXAMPLE}") from error


def format_timestamp(time: datetime) -> str:
    """Write a time in UTC; `parse_timestamp` reads it back."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _read_timestamp(value: object) -> datetime:
    if isinstance(value, str):
        return parse_timestamp(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    raise ValueError(f"this is not a time with date and zone; {_EXAMPLE}")


Timestamp = Annotated[
    datetime,
    BeforeValidator(_read_timestamp),
    PlainSerializer(format_timestamp),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "pattern": f"^{_TIMESTAMP.pattern}$",
            "maxLength": len("2026-01-31T08:00:00.123456789+00:00"),
        }
    ),
]
