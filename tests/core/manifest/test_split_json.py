"""JSON: several documents, characters as pairs of escapes, and what is not JSON."""

import json

import hypothesis
from hypothesis import strategies

from workron.core.manifest import yaml_reader

_VALUES = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers(-(2**63), 2**63 - 1)
    | strategies.text(strategies.characters(exclude_categories=["Cc", "Cs", "Cn"])),
    lambda inner: strategies.lists(inner, max_size=3),
    max_leaves=10,
)


def test_documents_are_split_when_they_are_adjacent() -> None:
    assert yaml_reader.split_json('\n {"a": 1}{"b":\n 2}\n\n{}') == [
        (2, '{"a": 1}'),
        (2, '{"b":\n 2}'),
        (5, "{}"),
    ]


def test_text_is_not_split_when_it_is_not_json() -> None:
    for other in ("a: 1", "{a: 1}", '{"a": 1} x', "[1]", "", '{"a": 1', "{" * 10_000):
        assert yaml_reader.split_json(other) is None


def test_pair_of_escapes_is_one_character() -> None:
    [(_, chunk)] = (
        yaml_reader.split_json(r'{"a": "\ud83d\ude00 \\ud83d\\ude00 \ud83d \u0041"}') or []
    )
    assert chunk == r'{"a": "\U0001f600 \\ud83d\\ude00 \ud83d \u0041"}'


@hypothesis.given(value=_VALUES, is_ascii=strategies.booleans())
def test_json_is_read_as_python_reads_it(value: object, is_ascii: bool) -> None:
    written = json.dumps({"value": value}, ensure_ascii=is_ascii, indent=1)
    [document] = yaml_reader.read_documents(written.encode())
    assert (document.value, document.problems) == ({"value": value}, [])
