"""The pages about variables and exit codes match the program."""

import pathlib
import re

import pytest

from tests.cli.conftest import Call, call
from workron.cli import exit_codes

_ROOT = pathlib.Path(__file__).parents[2]
_PAGES = _ROOT / "docs" / "reference"
_NAME = re.compile(r"^\| `(WORKRON_\w+)` ", re.MULTILINE)
_READ = re.compile(r'"(WORKRON_[A-Z_]+)"')

__all__ = ["call"]


def _documented(page: str) -> set[str]:
    return set(_NAME.findall((_PAGES / page).read_text()))


def test_page_lists_the_variables_that_a_command_sees(call: Call, tmp_path: pathlib.Path) -> None:
    flow = tmp_path / "flow.yaml"
    flow.write_text(f"""
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {{name: flow}}
spec:
  tasks:
    - {{name: all, command: "true"}}
  finally:
    - {{name: last, items: [1], command: "env > {tmp_path}/seen"}}
""")
    assert call("run", flow).code == 0
    seen = {line.partition("=")[0] for line in (tmp_path / "seen").read_text().splitlines()}
    assert {name for name in seen if name.startswith("WORKRON_")} == _documented(
        "job-environment.md"
    )
    # The shell itself sets the last two.
    rest = {name for name in seen if not name.startswith("WORKRON_")} - {"PWD", "_", "SHLVL"}
    assert rest == {"PATH", "LANG", "HOME", "TMPDIR"}


def test_page_lists_the_variables_that_the_program_reads() -> None:
    folders = [_ROOT / "workron" / "cli", _ROOT / "workron" / "telemetry"]
    texts = [path.read_text() for folder in folders for path in folder.glob("*.py")]
    assert {name for text in texts for name in _READ.findall(text)} == _documented(
        "command-line.md"
    )


@pytest.mark.parametrize("code", [one for name, one in vars(exit_codes).items()
                                  if name.isupper() and isinstance(one, int)])  # fmt: skip
def test_every_exit_code_has_a_meaning(code: int) -> None:
    assert code in exit_codes.MEANINGS
