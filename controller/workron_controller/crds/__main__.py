"""Write the definitions to files in a folder.

`--check` only compares them, and exits with 1 if a file is outdated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from workron_controller.crds import schema
from workron_controller.crds.kinds import KINDS

_HEADER = "# Made by `make generate` from the models in workron/core/model/; edit those.\n"


class _Dumper(yaml.SafeDumper):
    """Writes repeated values in full, without YAML anchors, which not every tool reads."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Use no anchors for any value."""
        return True


def files() -> dict[str, str]:
    """Return the content of each file by its name."""
    return {
        f"{kind.plural}.yaml": _HEADER
        + yaml.dump(schema.definition(kind), Dumper=_Dumper, sort_keys=False, width=100)
        for kind in KINDS
    }


def main(arguments: Sequence[str]) -> int:
    """Write the outdated files; with `--check` name them, and return 1 if there is one."""
    parser = argparse.ArgumentParser(prog="workron_controller.crds", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    made = {given.folder / name: text for name, text in files().items()}
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if given.check:
        for path in stale:
            sys.stderr.write(f"{path} is outdated; run `make generate`\n")
        return 1 if stale else 0
    for path in stale:
        path.write_text(made[path])
        sys.stdout.write(f"wrote {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
