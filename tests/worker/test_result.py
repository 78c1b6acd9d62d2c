"""What a job may leave as its result, and what is refused, in words."""

import json
from typing import Any

import pytest

from workron_worker import outcome


@pytest.mark.parametrize("value", [0, False, "", "ü\n", [1, {"a": None}], {"deep": [[[]]]}, 1.5])
def test_result_is_read_as_it_was_written(value: Any) -> None:
    assert outcome.parse_result(json.dumps(value).encode()) == value


@pytest.mark.parametrize("raw", [b"", b" \n", b"null"])
def test_result_is_none_when_nothing_was_written(raw: bytes) -> None:
    assert outcome.parse_result(raw) is None


def test_result_of_exactly_the_depth_that_is_allowed_is_taken() -> None:
    value: Any = "text"
    for _ in range(64):
        value = [value]
    assert outcome.parse_result(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"[1, 2", "is not JSON"),
        (b"NaN", "NaN is not a JSON number"),
        (b"[-Infinity]", "-Infinity is not a JSON number"),
        (b"1e999", "out of range: 1e999"),
        (b"9" * 16_000, "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 16_000, "nested too deeply: more than 64 levels"),
        (b"[" * 65 + b"]" * 65, "nested too deeply"),
        (b'{"a":' * 65 + b"0" + b"}" * 65, "nested too deeply"),
        (rb'{"a\u0000": 1}', "NUL character"),
        (rb'[{"a": "\ud800"}]', "half of a surrogate pair"),
    ],
)
def test_result_is_refused_in_words(raw: bytes, complaint: str) -> None:
    with pytest.raises(outcome.ResultError, match=complaint):
        outcome.parse_result(raw)
