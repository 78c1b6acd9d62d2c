"""The examples of the manifest reference are valid and appear on the page."""

import pathlib

import pytest

from docs import manifest
from workron.core.manifest.load import ManifestSource, load

_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "manifest.md"


@pytest.mark.parametrize("name", manifest.EXAMPLES)
def test_example_is_valid(name: str) -> None:
    assert len(load([ManifestSource(name, manifest.EXAMPLES[name].encode())])) == 1


@pytest.mark.parametrize("name", manifest.EXAMPLES)
def test_example_is_on_the_page_at_its_record(name: str) -> None:
    assert f"\n## {name}\n" in _PAGE.read_text()
    assert manifest.EXAMPLES[name] in _PAGE.read_text()
