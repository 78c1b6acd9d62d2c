"""Bytes to documents: lines, limits, aliases, merges and errors."""

import pytest
import yaml

from workron.core.manifest import yaml_reader
from workron.core.manifest.problems import Document


def _documents(source: str) -> list[Document]:
    return list(yaml_reader.read_documents(source.encode()))


def _value(source: str) -> object:
    [document] = _documents(source)
    assert document.problems == []
    return document.value


def _reported(source: str | bytes) -> list[str]:
    data = source.encode() if isinstance(source, str) else source
    return [
        p.format("f") for document in yaml_reader.read_documents(data) for p in document.problems
    ]


@pytest.fixture(params=["CSafeLoader", "SafeLoader"], autouse=True)
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with each of PyYAML's parsers."""
    monkeypatch.setattr(yaml_reader, "_LOADER", getattr(yaml, request.param))


def test_documents_are_returned_with_their_lines() -> None:
    first, second = _documents("# one\na: 1\n---\n\n- b:\n  - c\n  - d\n")
    assert (first.value, first.line, first.line_of(["a"])) == ({"a": 1}, 2, 2)
    assert (second.value, second.line_of([0, "b", 1])) == ([{"b": ["c", "d"]}], 7)
    assert second.line_of([0, "missing", "deeper"]) == 5


@pytest.mark.parametrize("source", ["", "\n\n", "# only a comment\n", "---\n---\n", "\ufeff"])
def test_document_has_no_value_when_the_text_is_empty(source: str) -> None:
    assert [d.value for d in _documents(source) if d.value is not None] == []
    assert _reported(source) == []


def test_scalar_is_a_text_when_it_is_quoted() -> None:
    assert _value("['1', \"yes\", 1, yes]") == ["1", "yes", 1, True]
    assert _value("- |\n  1\n- >-\n  yes\n") == ["1\n", "yes"]


def test_key_is_the_text_that_json_would_have() -> None:
    assert _value("{1: a, on: b, 0x10: c, '1.5': d}") == {
        "1": "a",
        "true": "b",
        "16": "c",
        "1.5": "d",
    }


@pytest.mark.parametrize("key", ["1.5", "~", "[a]", "{a: b}"])
def test_key_is_rejected_when_json_does_not_allow_it(key: str) -> None:
    [reported] = _reported(f"x:\n  ? {key}\n  : 1\n")
    assert reported.startswith("f:2: x")
    assert reported.endswith("a key is a text; write it in quotes")


@pytest.mark.parametrize("source", ["a: 1\nb: 2\na: 3", "1: x\n'1': y\n", "{on: 1,\n yes: 2}"])
def test_key_is_rejected_when_it_is_given_twice(source: str) -> None:
    [reported] = _reported(source)
    assert "is given twice, first in line 1; give it once" in reported


def test_alias_has_the_value_of_its_anchor() -> None:
    assert _value("a: &x {k: 1}\nb: *x\nc: &x 5\nd: *x\n") == {
        "a": {"k": 1},
        "b": {"k": 1},
        "c": 5,
        "d": 5,
    }


@pytest.mark.parametrize("source", ["a: *x", "a: &x [*x]", "a: &x {b: *x}", "&x 1\n---\n*x"])
def test_alias_is_rejected_when_its_anchor_is_not_complete(source: str) -> None:
    [reported] = _reported(source)
    assert "*x points to no anchor that is complete before it" in reported


def test_merge_adds_missing_keys_from_the_first_mapping_that_has_them() -> None:
    source = "a: &a {x: 1, w: 1}\nb: &b {x: 2, z: 2}\nc:\n  <<: [*a, *b]\n  z: 3\n"
    assert _documents(source)[0].value["c"] == {"x": 1, "w": 1, "z": 3}
    assert _value("{'<<': 1}") == {"<<": 1}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a: {x: 1,\n <<: {x: 2}}", "f:2: a[\"<<\"]: brings 'x', which stands before it"),
        ("<<: 5", 'f:1: ["<<"]: takes a mapping, or a list of mappings'),
        ("<<: [a]", 'f:1: ["<<"]: takes a mapping, or a list of mappings'),
        ("<<: {a: 1}\n<<: {b: 1}", 'f:2: ["<<"]: is given twice, first in line 1'),
    ],
)
def test_merge_is_rejected_when_it_is_ambiguous(source: str, message: str) -> None:
    [reported] = _reported(source)
    assert reported.startswith(message)


def test_aliases_are_rejected_when_they_multiply() -> None:
    bomb = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9))
    [reported] = _reported("a0: &a0 x\n" + bomb)
    assert "more than 100 times as large" in reported


def test_document_is_rejected_when_it_has_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "MAX_NODES", 100)
    assert _reported(f"[{'1,' * 99}]") == []
    [reported] = _reported(f"[{'1,' * 100}]")
    assert "more than 100 values" in reported


def test_nesting_is_rejected_when_it_is_deeper_than_64() -> None:
    assert _reported("[" * 64 + "]" * 64) == []
    assert _reported("[" * 65 + "]" * 65) == ["f:1: is nested more than 64 deep"]
    assert _reported("- " * 100_000) == ["f:1: is nested more than 64 deep"]


def test_nesting_is_rejected_when_aliases_make_it_deeper_than_64() -> None:
    half = f"a: &a {'[' * 40}{']' * 40}\n"
    assert _reported(f"{half}b: {'[' * 23}*a{']' * 23}") == []
    assert _reported(f"{half}b: {'[' * 24}*a{']' * 24}") == ["f:2: is nested more than 64 deep"]


def test_document_is_rejected_when_it_is_too_large_for_a_cluster() -> None:
    longest = yaml_reader.MAX_BYTES - len('a: ""')
    assert _reported(f'a: "{"x" * longest}"') == []
    for beyond in ("x" * (longest + 1), "é" * (longest // 2 + 1)):
        [reported] = _reported(f'a: "{beyond}"\n---\nb: 1')
        assert "f:1: the document is longer than 1,572,864 bytes" in reported


def test_size_limit_applies_to_each_document() -> None:
    half = f"a: {'x' * (yaml_reader.MAX_BYTES // 2)}\n"
    assert _reported(f"{half}---\n{half}---\n{half}---\n{half}") == []


@pytest.mark.parametrize(
    ("source", "reported"),
    [
        (b"a: 1\nb: \xff", "f:2: byte 0xff is not UTF-8"),
        ("a: 1".encode("utf-16"), "f:1: byte 0xff is not UTF-8"),
        (b"a: 1\n\x00", "f:2: the character U+0000 is not allowed"),
        (b"a: \x1b[0m", "f:1: the character U+001B is not allowed"),
        (b"a: \xed\xa0\x80", "f:1: byte 0xed is not UTF-8"),
        (b'a: "\\0"', "f:1: a: has a NUL character at position 0"),
        (b'"\\0": 1', 'f:1: ["\\u0000"]: has a NUL character'),
        (b"a:\n\t- b", "f:2: is not YAML: "),
        (b"a: 'b", "f:1: is not YAML: "),
        (b"a: 1\nb: x: y", "f:2: is not YAML: mapping values are not allowed"),
        (b"a: !!python/object:os.system x", "f:1: a: the tag !!python/object:os.system"),
        (b"a: !!set {b, c}", "f:1: a: the tag !!set is not supported"),
        (b"a:\n - 99999999999999999999", "f:2: a[0]: is an integer beyond 64 bits"),
        (b"a:\n - .inf", "f:2: a[0]: is infinite"),
    ],
)
def test_text_is_rejected_with_its_line(source: bytes, reported: str) -> None:
    assert _reported(source)[-1].startswith(reported)


def test_documents_before_a_broken_one_are_returned() -> None:
    documents = _documents("a: 1\n---\nb: [\n")
    assert documents[0].value == {"a": 1}
    assert documents[0].problems == []
    assert len(documents[-1].problems) == 1


def test_problem_has_a_hint_when_the_mistake_is_common() -> None:
    assert "needs quotes" in _reported("command: echo a: b")[0]


def test_syntax_error_names_the_line_where_the_open_part_begins() -> None:
    assert "a quoted scalar from line 2" in _reported("a: 1\nb: 'x\nc: 2\n")[0]
