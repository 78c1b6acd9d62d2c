"""Every path that ARCHITECTURE.md and CONTRIBUTING.md name exists, and every module."""

import importlib.util
import pathlib
import re

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_PAGES = ["ARCHITECTURE.md", "CONTRIBUTING.md"]
_CODE = re.compile(r"`([\w./-]+)`")
_MODULE = re.compile(r"-m ((?:tests|docs|bench|e2e)[\w.]*)")
_PACKAGE = re.compile(r"\b(?:workron\.\w+|workron_\w+)\b")
_SUFFIXES = (".py", ".md", ".yaml", ".json", ".sql", "/")


def _named_paths(page: str) -> set[str]:
    names = _CODE.findall((_ROOT / page).read_text())
    return {name for name in names if name.endswith(_SUFFIXES) and "NNNN" not in name}


def _exists(name: str) -> bool:
    if "/" in name.rstrip("/"):
        return (_ROOT / name).exists()
    # A bare name belongs to a folder that the same sentence names.
    return next(_ROOT.glob(f"*/**/{name.rstrip('/')}"), None) is not None or (_ROOT / name).exists()


@pytest.mark.parametrize("page", _PAGES)
def test_page_names_paths_that_exist(page: str) -> None:
    assert {name for name in _named_paths(page) if not _exists(name)} == set()


@pytest.mark.parametrize("page", _PAGES)
def test_page_names_modules_that_exist(page: str) -> None:
    text = (_ROOT / page).read_text()
    names = [*_MODULE.findall(text), *_PACKAGE.findall(text)]
    assert {name for name in names if importlib.util.find_spec(name) is None} == set()
