"""Names and texts: the values that each format accepts, and the same bounds in JSON schema."""

import re
from typing import Any

import pydantic
import pytest

from workron.core.model import base

_FORMS: dict[str, tuple[Any, list[str], list[str]]] = {
    "object name": (
        base.ObjectName,
        ["a", "a-b", "a.b-c.d", "0", "a" * 253],
        ["", "A", "-a", "a-", "a..b", "a_b", "a.", "a" * 254, "é", "a\n"],
    ),
    "generated name": (
        base.GenerateName,
        ["a-", "a", "a.b-", "a" * 248],
        ["", "-", "A-", "a.", "a-.b", "a" * 249],
    ),
    "label": (base.Label, ["a", "a-1", "a" * 63], ["", "a.b", "a" * 64, "a b"]),
    "pool name": (base.PoolName, ["default", "a" * 52], ["", "a.b", "a" * 53]),
    "label key": (
        base.LabelKey,
        ["a", "A_b.c-d", "x.io/Name", "a" * 63],
        ["", "/a", "a/", "X.io/a", "a/b/c", "-a", "a" * 64],
    ),
    "label value": (base.LabelValue, ["", "A", "a_b.c-d"], ["-a", "a b", "a" * 64]),
    "variable": (
        base.EnvName,
        ["A", "_a1", "PATH"],
        ["", "1A", "A-B", "A=B", "WORKRON_FENCE", "É", "A" * 256],
    ),
    "command": (base.Command, ["x", "\n x ", "é" * 65_535], ["", " \n\t", "é" * 65_536, "a\0"]),
    "argument": (base.Argument, ["", " ", "x" * 131_071], ["\0", "\ud800", "x" * 131_072]),
    "path": (base.Path, ["/a", "a b"], ["", "a\0"]),
}


def _cases(column: int) -> list[tuple[str, str]]:
    return [(name, text) for name, form in _FORMS.items() for text in form[column]]


def _adapter(name: str) -> pydantic.TypeAdapter[str]:
    config = pydantic.ConfigDict(strict=True)
    return pydantic.TypeAdapter(_FORMS[name][0], config=config)


@pytest.mark.parametrize(("name", "text"), _cases(1))
def test_text_is_accepted_when_it_fits_the_format(name: str, text: str) -> None:
    assert _adapter(name).validate_python(text) == text


@pytest.mark.parametrize(("name", "text"), _cases(2))
def test_text_is_rejected_when_it_does_not_fit_the_format(name: str, text: str) -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        _adapter(name).validate_python(text)
    assert refused.value.errors()[0]["type"] == "value_error"


@pytest.mark.parametrize("name", _FORMS)
def test_json_schema_has_the_bounds_of_the_format(name: str) -> None:
    schema = _adapter(name).json_schema()
    for text in _FORMS[name][1]:
        assert len(text) <= schema["maxLength"]
        assert re.search(schema.get("pattern", ""), text)


@pytest.mark.parametrize("name", _FORMS)
def test_text_is_rejected_when_it_is_a_number(name: str) -> None:
    with pytest.raises(pydantic.ValidationError, match="string_type"):
        _adapter(name).validate_python(5)


def test_message_is_short_when_the_text_is_long() -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        _adapter("object name").validate_python("A" * 250)
    assert len(refused.value.errors()[0]["msg"]) < 200
