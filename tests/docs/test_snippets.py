"""The snippets of the README, the tutorial and the recipes run as they are shown.

A YAML block is saved under the name in its first line. An `sh` block is run. In a `console` block
the lines behind `$ ` are run, and the other lines are what they print: durations and the order of
lines may differ. A block behind a comment `<!-- not run: ... -->` is left out.
"""

import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_PAGES = [
    "README.md",
    "docs/tutorial/first-pipeline.md",
    "docs/how-to/recipes.md",
    "docs/how-to/runs-in-a-store.md",
]
_BLOCK = re.compile(r"(<!-- not run: [^>]+-->\n)?```(\w+)\n(.*?)```", re.DOTALL)


class _Block(NamedTuple):
    language: str
    text: str


def _blocks(page: str) -> list[_Block]:
    found = _BLOCK.findall((_ROOT / page).read_text())
    return [_Block(language, text) for skipped, language, text in found if not skipped]


def _run(command: str, folder: pathlib.Path) -> str:
    program = f'workron() {{ "{sys.executable}" -m workron "$@"; }}; set -eo pipefail; {command}'
    done = subprocess.run(
        ["/bin/bash", "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return f"{done.stdout}\n{done.stderr}"


def _normalized(output: str) -> list[str]:
    lines = [re.sub(r"\d+\.\d+ s", "N s", line) for line in output.splitlines()]
    # A time line depends on the machine, and the widths of columns on the durations.
    lines = [re.sub(r"[ ━✗]+", " ", line).rstrip() for line in lines]
    return sorted(re.sub(r"^slowest: .*", "slowest:", line) for line in lines if line)


def _run_console(text: str, folder: pathlib.Path) -> None:
    for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = entry.partition("\n")
        output = _run(command, folder)
        assert _normalized(output) == _normalized(shown), command


@pytest.mark.parametrize("page", _PAGES)
def test_snippets_run_and_print_what_is_shown(page: str, tmp_path: pathlib.Path) -> None:
    for block in _blocks(page):
        if block.language == "yaml":
            name = block.text.partition("\n")[0].removeprefix("# ")
            (tmp_path / name).write_text(block.text)
        elif block.language == "sh":
            _run(block.text, tmp_path)
        elif block.language == "console":
            _run_console(block.text, tmp_path)
