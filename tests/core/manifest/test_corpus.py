"""Whole files: good ones are read, and refused ones have exactly the expected problems.

A refused file begins with a comment for each problem: `# expect: LINE: PATH: MESSAGE`.
"""

import pathlib

import pytest

from workron.core import errors
from workron.core.manifest import load

_CORPUS = pathlib.Path(__file__).parent / "corpus"
_MARK = "# expect: "


def _files(folder: str) -> list[pathlib.Path]:
    return sorted((_CORPUS / folder).iterdir())


def _read(file: pathlib.Path) -> list[load.Manifest]:
    return load.load([load.ManifestSource("f", file.read_bytes())])


@pytest.mark.parametrize("file", _files("good"), ids=lambda file: file.name)
def test_good_file_is_read(file: pathlib.Path) -> None:
    assert _read(file)


@pytest.mark.parametrize("file", _files("good"), ids=lambda file: file.name)
def test_good_file_is_read_as_the_same_when_it_was_written_back(file: pathlib.Path) -> None:
    for manifest in _read(file):
        again = type(manifest.resource).parse(manifest.resource.as_manifest())
        assert again == manifest.resource


@pytest.mark.parametrize("file", _files("refused"), ids=lambda file: file.name)
def test_refused_file_has_the_expected_problems(file: pathlib.Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    expected = [f"f:{line.removeprefix(_MARK)}" for line in lines if line.startswith(_MARK)]
    with pytest.raises(errors.ManifestError) as refused:
        _read(file)
    assert [*refused.value.problems] == expected
