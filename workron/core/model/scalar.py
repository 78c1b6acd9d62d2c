"""The forms of the single values in a manifest: names, texts, bounded numbers.

A form is checked in Python, so that the message says what would be right, and told to JSON
schema, so that the API server refuses the same. Used by every model of this package.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, Field
from pydantic_core import core_schema

from workron.core.model import record

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

ARGUMENT_BYTES: Final = 128 * 1024 - 1
"""Linux takes no longer string, its closing NUL not counted, as an argument of a program."""

_SHOWN: Final = 60
_UNCARRIABLE: Final = re.compile("[\0\ud800-\udfff]")


def shown(value: str) -> str:
    """Quote a value for a message, shortened, in printable characters."""
    return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")


def unfit_character(value: str) -> str | None:
    """Name the first character that neither a command nor a database can carry."""
    found = _UNCARRIABLE.search(value)
    if found is None:
        return None
    what = "a NUL character" if found[0] == "\0" else "half of a surrogate pair"
    return f"has {what} at position {found.start()}; leave it out or encode it"


def unique_by(attribute: str) -> AfterValidator:
    """Refuse a list of records two of which have the same `attribute`."""

    def check(records: tuple[Any, ...]) -> tuple[Any, ...]:
        names = [getattr(r, attribute) for r in records]
        if len(set(names)) < len(names):
            name, times = Counter(names).most_common(1)[0]
            raise record.refusal(f"{shown(name)} is given {times} times; give it once")
        return records

    return AfterValidator(check)


@dataclass(frozen=True, slots=True)
class Form:
    """What a string must look like; `pattern` matches the whole and is RE2 as well."""

    says: str
    limit: int
    """In bytes of UTF-8."""
    pattern: str | None = None

    def check(self, value: str) -> str:
        """Give the value back, or refuse it in words."""
        if problem := self._problem(value):
            raise record.refusal(problem)
        return value

    def _problem(self, value: str) -> str | None:
        if problem := unfit_character(value):
            return problem
        size = len(value) if value.isascii() else len(value.encode())
        if size > self.limit:
            return f"is {size:,} bytes long; at most {self.limit:,} are allowed"
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            return f"{shown(value)} is not {self.says}"
        return None

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Check after pydantic has seen that it is a string."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Carry the same bounds into JSON schema."""
        bounds: dict[str, Any] = {"maxLength": self.limit}
        if self.pattern is not None:
            bounds["pattern"] = f"^({self.pattern})$"
        return handler(schema) | bounds


_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_SAYS: Final = "lowercase letters, digits and '-', a letter or digit at both ends"
_RESERVED: Final = "WORKRON_"


def _unreserved(name: str) -> str:
    if name.startswith(_RESERVED):
        raise record.refusal(
            f"{shown(name)} is reserved: names in {_RESERVED} are set for each attempt"
        )
    return name


ObjectName = Annotated[
    str,
    Form(
        "a name: lowercase letters, digits, '-' and '.', a letter or digit at both ends",
        253,
        _SUBDOMAIN,
    ),
]
GenerateName = Annotated[
    str,
    Form(
        "a prefix of a name: lowercase letters, digits, '-' and '.', a letter or digit first",
        248,
        rf"({_LABEL}\.)*[a-z0-9][-a-z0-9]*",
    ),
]
Label = Annotated[str, Form(f"a name: {_LABEL_SAYS}", 63, _LABEL)]
PoolName = Annotated[str, Form(f"the name of a pool: {_LABEL_SAYS}", 52, _LABEL)]

LabelKey = Annotated[
    str,
    Form(
        "a label's key: up to 63 letters, digits, '-', '_' or '.', after an optional 'prefix/'",
        317,
        rf"({_SUBDOMAIN}/)?{_QUALIFIED}",
    ),
]
LabelValue = Annotated[
    str,
    Form(
        "a label's value: letters, digits, '-', '_' or '.', a letter or digit at both ends",
        63,
        rf"({_QUALIFIED})?",
    ),
]
Labels = dict[LabelKey, LabelValue]

EnvName = Annotated[
    str,
    Form(
        "the name of an environment variable: letters, digits and '_', no digit first",
        255,
        r"[A-Za-z_][A-Za-z0-9_]*",
    ),
    AfterValidator(_unreserved),
]
EnvValue = Annotated[str, Form("a value", 128_000)]

Argument = Annotated[str, Form("an argument", ARGUMENT_BYTES)]
Command = Annotated[str, Form("a command: it is blank", ARGUMENT_BYTES, r"[\s\S]*\S[\s\S]*")]
Path = Annotated[str, Form("a path: it is empty", 4095, r"[\s\S]+")]
Text = Annotated[str, Form("a text", 256 * 1024)]

Priority = Annotated[int, Field(ge=-1000, le=1000)]
Tries = Annotated[int, Field(ge=1, le=100)]
ExitCode = Annotated[int, Field(ge=1, le=255)]
Seconds = Annotated[int, Field(ge=0, le=315_360_000)]
"""At most ten years."""
