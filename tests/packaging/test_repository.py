"""The repository does not depend on one machine: it has no path, host or mirror of one."""

import os
import pathlib
import re
from collections.abc import Iterator

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_GENERATED_FOLDERS = {"__pycache__", "dist", "build", "node_modules"}
_HIDDEN_FOLDERS = {".ci", ".github"}
_NOT_COMMITTED = {".git", ".dmypy.json"}
"""Files of one checkout. In a worktree `.git` is a file, which has the path of the repository."""
_MACHINE_PATH = re.compile(r"(?<![\w.}$*-])/(?:root|work|home/\w+|Users/\w+)/[\w.]")
_PRIVATE_HOST = re.compile(r"\b[\w-]+\.(?:corp|internal|intranet|lan)\b(?=[:/])")
_PUBLIC_INDEX = {"https://pypi.org", "https://files.pythonhosted.org"}


def _texts() -> Iterator[tuple[pathlib.Path, str]]:
    for folder, inner, files in os.walk(_ROOT):
        inner[:] = [name for name in inner if name in _HIDDEN_FOLDERS or not _is_skipped(name)]
        for path in (pathlib.Path(folder, name) for name in files if name not in _NOT_COMMITTED):
            yield path.relative_to(_ROOT), path.read_text(errors="replace")


def _is_skipped(folder: str) -> bool:
    return folder.startswith(".") or folder in _GENERATED_FOLDERS


@pytest.mark.parametrize("pattern", [_MACHINE_PATH, _PRIVATE_HOST])
def test_text_has_no_path_or_host_of_one_machine(pattern: re.Pattern[str]) -> None:
    hits = [(str(path), hit.group()) for path, text in _texts() for hit in pattern.finditer(text)]
    assert hits == []


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("cd " + "/ho" + "me/ann/workron", _MACHINE_PATH),
        ("image: registry" + ".corp:5000/workron", _PRIVATE_HOST),
    ],
)
def test_pattern_finds_an_example(line: str, pattern: re.Pattern[str]) -> None:
    assert pattern.search(line)


def test_lock_file_names_the_public_index_only() -> None:
    lock = (_ROOT / "uv.lock").read_text()
    assert set(re.findall(r"https?://[^/\"]+", lock)) == _PUBLIC_INDEX
