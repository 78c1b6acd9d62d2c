"""Scalars: the table of what kubectl makes of each, entry by entry.

The values were taken from `kubectl annotate --local -o json` on a file with these scalars.
"""

import math
from typing import Any

import pytest

from workron.core.manifest import yaml_scalars

_BOOLEANS = {
    True: "y Y yes Yes YES true True TRUE on On ON",
    False: "n N no No NO false False FALSE off Off OFF",
}
_NULLS = ["", "~", "null", "Null", "NULL"]
_NUMBERS: dict[int | float, str] = {
    0: "0 00 +0 -0 -0.0 0. -.0 0e0 1e-400",
    1: "1 +1 1.0 1_ 0.1e1 0b_1 0_x1 0x1",
    2: "0b10 0b1_0 2.",
    3: "3 3.0 0b11 0B11 +0b11 0b+11",
    -3: "-3 -0b11 0b-11",
    8: "8 08 8.0 010",
    15: "15 017 0o17 0O17 +017 +0o17 0_17 0o_17 0xf 0XF",
    -15: "-15 -017 -0o17",
    31: "0x1F 0X1F 0x1_F +0x1F",
    100: "100 .1e3 1e2 1E+2 1_0_0",
    511: "0777 0x1FF",
    1000: "1e3 1E3 1e+3 1.e3 1_000 1__000 +1_000",
    10_000_000_000: "1e1_0",
    5_000_000_000: ".5e1_0",
    9_223_372_036_854_775_807: "9223372036854775807 0x7FFFFFFFFFFFFFFF",
    -9_223_372_036_854_775_808: "-9223372036854775808",
    -922_337_203_685_477_600: "-922337203685477580.8",
    0.5: ".5 0.5 00.5 +.5 5e-1 .5_0 0.50",
    -0.5: "-.5 -0.5",
    1.1: "1.1 1.10 1_.1 1._1",
    10.5: "1_0.5_0",
    0.001: "1e-3",
    1e21: "1e21 1E+21",
}
_TEXTS = """yEs nUll tRue TRUe .iNf Infinity inf NaN nan Y1 true1 yes! 12:30:00 1:1 190:20:30.15
2001-12-14 2015-1-1 2001-12-14T21:59:43.10-05:00 v1 1.2.3 10Gi 100m 1h30m 3s <<x 1,000 .e1 . + -
+. -. ... 0x 0b 0o 0xg 0b2 0o8 0x1p4 0x1.8p1 1e 1e3.5 1e400 -1e400 9e999 _1 ._5 .5_ .5__0 .5e_1
0b1e5x 1-1 --1 +-1 0x-1 -0b-1 00x1 .inf1 .0x1 1.5.5 ٣ = !x"""


def _pairs(table: dict[Any, str]) -> list[tuple[str, Any]]:
    return [(text, value) for value, texts in table.items() for text in texts.split()]


@pytest.mark.parametrize(("text", "value"), _pairs(_BOOLEANS))
def test_word_is_read_as_a_boolean(text: str, value: object) -> None:
    assert yaml_scalars.resolve_scalar(text) is value


@pytest.mark.parametrize("text", _NULLS)
def test_word_is_read_as_null(text: str) -> None:
    assert yaml_scalars.resolve_scalar(text) is None


@pytest.mark.parametrize(("text", "value"), _pairs(_NUMBERS))
def test_scalar_is_read_as_the_number_that_json_has(text: str, value: float) -> None:
    number = yaml_scalars.as_json(yaml_scalars.resolve_scalar(text))
    assert (type(number), number) == (type(value), value)


@pytest.mark.parametrize("text", _TEXTS.split())
def test_scalar_is_read_as_a_text(text: str) -> None:
    assert yaml_scalars.resolve_scalar(text) == text


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN"])
def test_scalar_is_rejected_when_json_has_no_such_number(text: str) -> None:
    value = yaml_scalars.resolve_scalar(text)
    assert isinstance(value, float)
    assert not math.isfinite(value)
    assert "infinite or not a number" in str(yaml_scalars.scalar_problem(value))


@pytest.mark.parametrize(
    "text", ["9223372036854775808", "-9223372036854775809", "0xFFFFFFFFFFFFFFFF", "9" * 5000]
)
def test_scalar_is_rejected_when_it_exceeds_64_bits(text: str) -> None:
    assert "beyond 64 bits" in str(yaml_scalars.scalar_problem(yaml_scalars.resolve_scalar(text)))


def test_whole_float_is_rejected_when_it_exceeds_64_bits() -> None:
    assert yaml_scalars.as_json(yaml_scalars.resolve_scalar("1e20")) == 10**20
    assert "beyond 64 bits" in str(yaml_scalars.read_scalar("1e20", None, is_plain=True)[1])


@pytest.mark.parametrize(
    ("text", "tag", "value"),
    [
        ("5", "str", "5"),
        ("5", "int", 5),
        ("5", "float", 5),
        ("yes", "bool", True),
        ("", "null", None),
    ],
)
def test_tag_decides_the_type_of_a_scalar_in_quotes(text: str, tag: str, value: object) -> None:
    read = yaml_scalars.read_scalar(text, f"tag:yaml.org,2002:{tag}", is_plain=False)
    assert read == (value, None)


@pytest.mark.parametrize(("text", "tag"), [("5.5", "int"), ("x", "bool"), ("true", "int")])
def test_tag_is_rejected_when_the_scalar_has_another_type(text: str, tag: str) -> None:
    problem = yaml_scalars.read_scalar(text, f"tag:yaml.org,2002:{tag}", is_plain=True)[1]
    assert "not of the type that its tag says" in str(problem)


@pytest.mark.parametrize("tag", ["!foo", "tag:yaml.org,2002:python/name:os.system", "!!binary"])
def test_tag_is_rejected_when_it_is_not_a_tag_of_yaml(tag: str) -> None:
    assert "is not supported" in str(yaml_scalars.read_scalar("x", tag, is_plain=True)[1])
