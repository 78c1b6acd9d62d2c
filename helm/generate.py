"""Writes the generated files of the chart: its README and the templates of the definitions.

With `--check` it only compares them, and exits with 1 if a file is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from helm import definitions, readme

_ROOT: Final = Path(__file__).parents[1]
_CHART: Final = _ROOT / "helm" / "workron"


def files() -> dict[Path, str]:
    """Return the text of each generated file by its path."""
    made = {
        _CHART / "templates" / "crds" / path.name: definitions.template(path.read_text())
        for path in sorted((_ROOT / "crds").glob("*.yaml"))
    }
    return made | {_CHART / "README.md": readme.page((_CHART / "values.yaml").read_text())}


def main(arguments: Sequence[str]) -> int:
    """Write the files that differ, or with `--check` print them and return 1."""
    stale = [
        path for path, text in files().items() if not path.exists() or path.read_text() != text
    ]
    if "--check" in arguments:
        for path in stale:
            print(f"{path} is out of date; run `make generate`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(files()[path])
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
