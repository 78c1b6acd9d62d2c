"""Where a command may leave its result, and what is not taken from there, in words."""

import os
import pathlib

import pytest

from workron_runner import workspace


def test_result_is_taken_byte_by_byte(tmp_path: pathlib.Path) -> None:
    (tmp_path / "result").write_bytes(b"\0\xff\n")
    assert workspace.read_result(tmp_path / "result") == b"\0\xff\n"


def test_result_is_empty_when_there_is_no_file(tmp_path: pathlib.Path) -> None:
    assert workspace.read_result(tmp_path / "absent") == b""


def test_result_of_exactly_the_limit_is_taken(tmp_path: pathlib.Path) -> None:
    (tmp_path / "result").write_bytes(b"x" * 16 * 1024)
    assert workspace.read_result(tmp_path / "result") == b"x" * 16 * 1024


def test_result_is_refused_when_it_is_larger_than_the_limit(tmp_path: pathlib.Path) -> None:
    (tmp_path / "result").write_bytes(b"x" * (16 * 1024 + 1))
    with pytest.raises(workspace.ResultFileError, match="larger than 16384 bytes"):
        workspace.read_result(tmp_path / "result")


def test_result_is_refused_at_once_when_it_is_a_pipe(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(workspace.ResultFileError, match="not a regular file"):
        workspace.read_result(tmp_path / "pipe")


def test_result_is_refused_when_it_is_a_link_to_another_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(workspace.ResultFileError, match="cannot be read"):
        workspace.read_result(tmp_path / "link")


def test_result_is_refused_when_it_is_a_folder(tmp_path: pathlib.Path) -> None:
    with pytest.raises(workspace.ResultFileError, match="not a regular file"):
        workspace.read_result(tmp_path)
