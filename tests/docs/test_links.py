"""Every link from one page of the repository to another leads somewhere."""

import pathlib
import re

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_PAGES = sorted([*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_page_links_to_files_that_exist(page: pathlib.Path) -> None:
    targets = [page.parent / link for link in _LINK.findall(page.read_text())]
    assert [str(target) for target in targets if not target.exists()] == []
