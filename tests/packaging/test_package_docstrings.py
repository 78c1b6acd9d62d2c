"""The docstring of every package describes its content in two to four lines of prose."""

import ast
import pathlib
import re

import pytest

from tests.packaging import product

_PACKAGE_FILES = [name for name in product.modules() if name.endswith("/__init__.py")]
_FEWEST_LINES = 2
_MOST_LINES = 4
_HEADINGS = re.compile(r"^(?:Belongs here|Does not belong here|Called by)\b", re.MULTILINE)


def _docstring(name: str) -> str:
    return ast.get_docstring(ast.parse((product.ROOT / name).read_text())) or ""


@pytest.mark.parametrize("name", _PACKAGE_FILES)
def test_package_docstring_has_two_to_four_lines(name: str) -> None:
    lines = [line for line in _docstring(name).splitlines() if line.strip()]
    assert _FEWEST_LINES <= len(lines) <= _MOST_LINES


@pytest.mark.parametrize("name", _PACKAGE_FILES)
def test_package_docstring_is_prose_without_headings(name: str) -> None:
    assert _HEADINGS.findall(_docstring(name)) == []


@pytest.mark.parametrize("package", product.PACKAGES, ids=lambda package: package.name)
def test_folder_with_modules_is_a_package(package: pathlib.Path) -> None:
    folders = {module.parent for module in package.rglob("*.py")}
    assert {folder for folder in folders if not (folder / "__init__.py").exists()} == set()
