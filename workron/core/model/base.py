"""What all models share: strict values, no unknown fields, frozen, camelCase outside.

Base of every model in this package. Python code builds them by attribute name; what a person
wrote goes through `Record.parse`, which knows the outside names alone.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

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
from pydantic_core import PydanticCustomError, core_schema

from workron.core import formats, jobspec
from workron.core.formats import TextFormat

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue


LAX: Final = Strict(strict=False)
"""Lets a list become a tuple and a word an enum; what is in the list stays strict."""


def invalid(message: str) -> PydanticCustomError:
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


def unique_by(attribute: str) -> AfterValidator:
    """Refuse a list of records two of which have the same `attribute`."""

    def check(records: tuple[Any, ...]) -> tuple[Any, ...]:
        names = [getattr(r, attribute) for r in records]
        if len(set(names)) < len(names):
            name, times = Counter(names).most_common(1)[0]
            raise invalid(f"{formats.quoted(name)} is given {times} times; give it once")
        return records

    return AfterValidator(check)


@dataclass(frozen=True, slots=True)
class Fits:
    """Has pydantic check the form of a string."""

    form: TextFormat

    def check(self, value: str) -> str:
        """Give the value back, or refuse it in words."""
        if problem := self.form.problem(value):
            raise invalid(problem)
        return value

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Check after pydantic has seen that it is a string."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Carry the same bounds into JSON schema."""
        bounds: dict[str, Any] = {"maxLength": self.form.limit}
        if self.form.pattern is not None:
            bounds["pattern"] = f"^({self.form.pattern})$"
        return handler(schema) | bounds


_SUBDOMAIN: Final = rf"{formats.LABEL_PATTERN}(\.{formats.LABEL_PATTERN})*"
_QUALIFIED: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"


def _unreserved(name: str) -> str:
    if problem := formats.reserved_env_message(name):
        raise invalid(problem)
    return name


ObjectName = Annotated[
    str,
    Fits(
        TextFormat(
            "a name: lowercase letters, digits, '-' and '.', a letter or digit at both ends",
            253,
            _SUBDOMAIN,
        )
    ),
]
GenerateName = Annotated[
    str,
    Fits(
        TextFormat(
            "a prefix of a name: lowercase letters, digits, '-' and '.', a letter or digit first",
            248,
            rf"({formats.LABEL_PATTERN}\.)*[a-z0-9][-a-z0-9]*",
        )
    ),
]
Label = Annotated[str, Fits(formats.LABEL)]
PoolName = Annotated[str, Fits(formats.POOL_NAME)]

LabelKey = Annotated[
    str,
    Fits(
        TextFormat(
            "a label's key: up to 63 letters, digits, '-', '_' or '.', after an optional 'prefix/'",
            317,
            rf"({_SUBDOMAIN}/)?{_QUALIFIED}",
        )
    ),
]
LabelValue = Annotated[
    str,
    Fits(
        TextFormat(
            "a label's value: letters, digits, '-', '_' or '.', a letter or digit at both ends",
            63,
            rf"({_QUALIFIED})?",
        )
    ),
]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=100)]
"""Of pods and nodes; how many an object itself may have is for the API server to say."""

EnvName = Annotated[str, Fits(formats.ENV_NAME), AfterValidator(_unreserved)]
EnvValue = Annotated[str, Fits(formats.ENV_VALUE)]

Argument = Annotated[str, Fits(formats.ARGUMENT)]
Command = Annotated[str, Fits(formats.COMMAND)]
Path = Annotated[str, Fits(formats.PATH)]
Text = Annotated[str, Fits(TextFormat("a text", 256 * 1024))]

Priority = Annotated[int, Field(ge=-1000, le=1000)]
Attempts = Annotated[int, Field(ge=jobspec.ATTEMPTS.least, le=jobspec.ATTEMPTS.most)]
ExitCode = Annotated[int, Field(ge=jobspec.EXIT_CODE.least, le=jobspec.EXIT_CODE.most)]
Seconds = Annotated[int, Field(ge=0, le=315_360_000)]
"""At most ten years."""


def _read(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return _exact(value)
    try:
        return formats.read_duration(value)
    except ValueError as error:
        raise invalid(str(error)) from None


def _exact(value: timedelta) -> timedelta:
    if not timedelta(0) <= value <= formats.MAX_DURATION or value % timedelta(milliseconds=1):
        raise invalid(f"{value} is not a number of milliseconds up to ten years")
    return value


def _read_positive(value: object) -> timedelta:
    try:
        return formats.require_positive(_read(value))
    except ValueError as error:
        raise invalid(str(error)) from None


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
PositiveDuration = Annotated[
    timedelta,
    BeforeValidator(_read_positive),
    PlainSerializer(formats.format_duration),
    WithJsonSchema(_SCHEMA),
]


_FORM: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])"
)
"""In capitals and with a zone that there may be: an API server takes others, and then can neither
change that object nor have its status written, since its own rules read no such time."""
_EXAMPLE: Final = "write it like 2026-01-31T08:00:00Z"


def parse_timestamp(text: str) -> datetime:
    """Read an RFC 3339 time with a zone; raises a refusal in words."""
    if not _FORM.fullmatch(text):
        raise invalid(f"{formats.quoted(text)} is not a time with date and zone; {_EXAMPLE}")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise invalid(f"{formats.quoted(text)} is not on the calendar; {_EXAMPLE}") from error


def format_timestamp(moment: datetime) -> str:
    """Write a time in UTC so that `parse` reads the same."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _moment_read(value: object) -> datetime:
    if isinstance(value, str):
        return parse_timestamp(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    raise invalid(f"this is not a time with date and zone; {_EXAMPLE}")


Timestamp = Annotated[
    datetime,
    BeforeValidator(_moment_read),
    PlainSerializer(format_timestamp),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "pattern": f"^{_FORM.pattern}$",
            "maxLength": len("2026-01-31T08:00:00.123456789+00:00"),
        }
    ),
]
