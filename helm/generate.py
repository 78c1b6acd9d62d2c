"""Write the parts of the chart that come from elsewhere, or with `--check` only compare them.

Called by `make generate` and, with `--check`, by `make check`: exit code 1 says that a file is not
what it is made from says.
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
    """Render each file, by its path."""
    made = {
        _CHART / "templates" / "crds" / path.name: definitions.template(path.read_text())
        for path in sorted((_ROOT / "crds").glob("*.yaml"))
    }
    return made | {_CHART / "README.md": readme.page((_CHART / "values.yaml").read_text())}


def main(arguments: Sequence[str]) -> int:
    """Write what differs, or with `--check` name it; 1 if a check found something."""
    stale = [
        path for path, text in files().items() if not path.exists() or path.read_text() != text
    ]
    if "--check" in arguments:
        for path in stale:
            print(f"{path} is not what it is made from; run `make generate`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(files()[path])
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
