"""The JSON text that the stores keep of a value, or why a value has none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron.core import errors, payloads

_DEEP: Any = []
for _ in range(100_000):
    _DEEP = [_DEEP]


_WHOLE = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
_ODD = ["\\u0000", '",', '"\\u0000"', ',"\\u0000",', "\\"]
_TEXTS = st.text(_WHOLE) | st.sampled_from(_ODD)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _FLOATS | _TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(_TEXTS, inner),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, 2.5, None, True]}, '{"a":[1,2.5,null,true]}'),
        (1e22, "1e+22"),
        (-0.0, "-0.0"),
        (10**30, "1" + "0" * 30),
        ("ü\U0001f9ea\n", '"ü\U0001f9ea\\n"'),
        ("\\u0000", '"\\\\u0000"'),
    ],
)
def test_value_is_encoded_compactly_with_its_own_digits(value: Any, text: str) -> None:
    assert payloads.to_json(value) == text


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("a\0b", "NUL"),
        ({"\0": 1}, "NUL"),
        ("\\\0", "NUL"),
        (["\ud800"], "half of a surrogate pair"),
        (float("nan"), "is not JSON"),
        (float("-inf"), "is not JSON"),
        ({1, 2}, "is not JSON"),
        (10**5000, "is not JSON"),
        (_DEEP, "nested too deeply"),
    ],
    ids=["text", "key", "backslash", "surrogate", "nan", "inf", "set", "digits", "deep"],
)
def test_value_is_rejected_when_a_store_cannot_keep_it(value: Any, why: str) -> None:
    with pytest.raises(errors.StoreDataError, match=why):
        payloads.to_json(value)


def test_inputs_are_too_large_when_they_are_nested_too_deeply() -> None:
    deep = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert payloads.inputs_fit(deep) == (None, True)


_SPECS = st.lists(st.dictionaries(_TEXTS, _JSON))


@given(_SPECS)
def test_values_of_models_are_encoded_to_one_text_each(specs: list[dict[str, Any]]) -> None:
    assert [json.loads(text) for text in payloads.models_to_json(specs)] == specs


def test_integers_are_encoded_in_full_when_they_exceed_64_bits() -> None:
    spec, text = {"items": [10**20, -(10**20)]}, f'{{"items":[1{"0" * 20},-1{"0" * 20}]}}'
    assert payloads.models_to_json([spec]) == [text]
