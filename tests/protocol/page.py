"""Reading and writing the figures in the documentation."""

from __future__ import annotations

import pathlib
import re
from typing import Final

PAGE: Final = pathlib.Path(__file__).parents[2] / "docs" / "explanation" / "lease-and-fence.md"
_BLOCK: Final = re.compile(r"(?<=<!-- figures -->\n```text\n).*?(?=```\n<!-- end -->)", re.DOTALL)


def figures() -> list[str]:
    """The lines between the page's marks."""
    found = _BLOCK.search(PAGE.read_text())
    assert found is not None, f"{PAGE.name} has no block of figures between its marks"
    return found.group().splitlines()


def write(lines: list[str]) -> None:
    """Put these lines between the page's marks."""
    text = "".join(f"{line}\n" for line in lines)
    PAGE.write_text(_BLOCK.sub(lambda _: text, PAGE.read_text()))
