"""What a job may leave as its result, and what is refused, in words."""

import json
import os
import pathlib
from typing import Any

import pytest

from workron_worker import result


def _read(folder: pathlib.Path, raw: bytes) -> Any:
    path = folder / "result.json"
    path.write_bytes(raw)
    return result.read(path)


@pytest.mark.parametrize("value", [0, False, "", "ü\n", [1, {"a": None}], {"deep": [[[]]]}, 1.5])
def test_result_is_read_as_it_was_written(tmp_path: pathlib.Path, value: Any) -> None:
    assert _read(tmp_path, json.dumps(value).encode()) == value


@pytest.mark.parametrize("raw", [b"", b" \n", b"null"])
def test_result_is_none_when_nothing_was_written(tmp_path: pathlib.Path, raw: bytes) -> None:
    assert _read(tmp_path, raw) is None


def test_result_is_none_when_there_is_no_file(tmp_path: pathlib.Path) -> None:
    assert result.read(tmp_path / "absent") is None


def test_result_of_exactly_the_depth_that_is_allowed_is_taken(tmp_path: pathlib.Path) -> None:
    value: Any = "text"
    for _ in range(64):
        value = [value]
    assert _read(tmp_path, json.dumps(value).encode()) == value


def test_result_of_exactly_the_limit_is_taken(tmp_path: pathlib.Path) -> None:
    assert len(_read(tmp_path, b'"%s"' % (b"x" * (16 * 1024 - 2)))) == 16 * 1024 - 2


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b'"%s"' % (b"x" * 16 * 1024), "larger than 16384 bytes"),
        (b"[1, 2", "is not JSON"),
        (b"NaN", "has no number NaN"),
        (b"[-Infinity]", "has no number -Infinity"),
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
def test_result_is_refused_in_words(tmp_path: pathlib.Path, raw: bytes, complaint: str) -> None:
    with pytest.raises(result.ResultError, match=complaint):
        _read(tmp_path, raw)


def test_result_is_refused_at_once_when_it_is_a_pipe(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(result.ResultError, match="not a regular file"):
        result.read(tmp_path / "pipe")


def test_result_is_refused_when_it_is_a_link_to_another_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(result.ResultError, match="cannot be read"):
        result.read(tmp_path / "link")


def test_result_is_refused_when_it_is_a_folder(tmp_path: pathlib.Path) -> None:
    with pytest.raises(result.ResultError, match="not a regular file"):
        result.read(tmp_path)
