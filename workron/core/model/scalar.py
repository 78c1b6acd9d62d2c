"""The forms of the single values in a manifest: names, texts, bounded numbers.

A form is checked in Python, so that the message says what would be right, and told to JSON
schema, so that the API server refuses the same. Used by every model of this package.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, Field
from pydantic_core import core_schema

from workron.core import command, form
from workron.core.form import Form
from workron.core.model import record

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue


def unique_by(attribute: str) -> AfterValidator:
    """Refuse a list of records two of which have the same `attribute`."""

    def check(records: tuple[Any, ...]) -> tuple[Any, ...]:
        names = [getattr(r, attribute) for r in records]
        if len(set(names)) < len(names):
            name, times = Counter(names).most_common(1)[0]
            raise record.refusal(f"{form.shown(name)} is given {times} times; give it once")
        return records

    return AfterValidator(check)


@dataclass(frozen=True, slots=True)
class Fits:
    """Has pydantic check the form of a string."""

    form: Form

    def check(self, value: str) -> str:
        """Give the value back, or refuse it in words."""
        if problem := self.form.problem(value):
            raise record.refusal(problem)
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


_SUBDOMAIN: Final = rf"{form.LABEL_PATTERN}(\.{form.LABEL_PATTERN})*"
_QUALIFIED: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"


def _unreserved(name: str) -> str:
    if problem := form.reservation(name):
        raise record.refusal(problem)
    return name


ObjectName = Annotated[
    str,
    Fits(
        Form(
            "a name: lowercase letters, digits, '-' and '.', a letter or digit at both ends",
            253,
            _SUBDOMAIN,
        )
    ),
]
GenerateName = Annotated[
    str,
    Fits(
        Form(
            "a prefix of a name: lowercase letters, digits, '-' and '.', a letter or digit first",
            248,
            rf"({form.LABEL_PATTERN}\.)*[a-z0-9][-a-z0-9]*",
        )
    ),
]
Label = Annotated[str, Fits(form.LABEL)]
PoolName = Annotated[str, Fits(form.POOL_NAME)]

LabelKey = Annotated[
    str,
    Fits(
        Form(
            "a label's key: up to 63 letters, digits, '-', '_' or '.', after an optional 'prefix/'",
            317,
            rf"({_SUBDOMAIN}/)?{_QUALIFIED}",
        )
    ),
]
LabelValue = Annotated[
    str,
    Fits(
        Form(
            "a label's value: letters, digits, '-', '_' or '.', a letter or digit at both ends",
            63,
            rf"({_QUALIFIED})?",
        )
    ),
]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=100)]
"""Of pods and nodes; how many an object itself may have is for the API server to say."""

EnvName = Annotated[str, Fits(form.ENV_NAME), AfterValidator(_unreserved)]
EnvValue = Annotated[str, Fits(form.ENV_VALUE)]

Argument = Annotated[str, Fits(form.ARGUMENT)]
Command = Annotated[str, Fits(form.COMMAND)]
Path = Annotated[str, Fits(form.PATH)]
Text = Annotated[str, Fits(Form("a text", 256 * 1024))]

Priority = Annotated[int, Field(ge=-1000, le=1000)]
Tries = Annotated[int, Field(ge=command.TRIES.least, le=command.TRIES.most)]
ExitCode = Annotated[int, Field(ge=command.EXIT_CODE.least, le=command.EXIT_CODE.most)]
Seconds = Annotated[int, Field(ge=0, le=315_360_000)]
"""At most ten years."""
