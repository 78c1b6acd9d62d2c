"""The repository means the same on every machine: it names no path or mirror of any one machine."""

import os
import pathlib
import re
from collections.abc import Iterator

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_NOT_OURS = {"__pycache__", "dist", "build", "node_modules"}
_HIDDEN_OF_OURS = {".ci", ".github"}
_NOT_COMMITTED = {".git", ".dmypy.json"}
"""Files of one checkout: `.git` is a file in a worktree, and names the repository's folder."""
_PATH_OF_ONE_MACHINE = re.compile(r"(?<![\w.}$*-])/(?:root|work|home/\w+|Users/\w+)/[\w.]")
_HOST_OF_ONE_NETWORK = re.compile(r"\b[\w-]+\.(?:corp|internal|intranet|lan)\b(?=[:/])")
_PUBLIC_INDEX = {"https://pypi.org", "https://files.pythonhosted.org"}


def _texts() -> Iterator[tuple[pathlib.Path, str]]:
    for folder, inner, files in os.walk(_ROOT):
        inner[:] = [name for name in inner if name in _HIDDEN_OF_OURS or not _is_foreign(name)]
        for path in (pathlib.Path(folder, name) for name in files if name not in _NOT_COMMITTED):
            yield path.relative_to(_ROOT), path.read_text(errors="replace")


def _is_foreign(folder: str) -> bool:
    return folder.startswith(".") or folder in _NOT_OURS


@pytest.mark.parametrize("pattern", [_PATH_OF_ONE_MACHINE, _HOST_OF_ONE_NETWORK])
def test_text_names_nothing_that_only_one_machine_has(pattern: re.Pattern[str]) -> None:
    hits = [(str(path), hit.group()) for path, text in _texts() for hit in pattern.finditer(text)]
    assert hits == []


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("cd " + "/ho" + "me/ann/workron", _PATH_OF_ONE_MACHINE),
        ("image: registry" + ".corp:5000/workron", _HOST_OF_ONE_NETWORK),
    ],
)
def test_pattern_catches_what_it_is_for(line: str, pattern: re.Pattern[str]) -> None:
    assert pattern.search(line)


def test_lock_file_names_only_the_public_index() -> None:
    lock = (_ROOT / "uv.lock").read_text()
    assert set(re.findall(r"https?://[^/\"]+", lock)) == _PUBLIC_INDEX
