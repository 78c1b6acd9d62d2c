"""`python3 -m workron_runner.pack FILE`: writes the runner into one file that any Python can run.

`python3 FILE --socket PATH` starts it. In a pod an init container of the worker image writes the
file into a volume, and a container of another image runs it.
"""

from __future__ import annotations

import argparse
import pathlib
import zipfile
from typing import Final

_PACKAGE: Final = pathlib.Path(__file__).parent
_MAIN: Final = "from workron_runner.__main__ import main\n\nmain()\n"


def write(path: pathlib.Path) -> None:
    """Write the file, atomically."""
    new = path.with_name(f"{path.name}.new")
    # Uncompressed: a Python may lack zlib.
    with zipfile.ZipFile(new, "w") as archive:
        archive.writestr("__main__.py", _MAIN)
        for module in sorted(_PACKAGE.glob("*.py")):
            archive.write(module, f"{_PACKAGE.name}/{module.name}")
    new.chmod(0o644)
    new.replace(path)


def main() -> None:
    """Parse the command line and write the file."""
    parser = argparse.ArgumentParser("workron_runner.pack", description="Pack the runner.")
    parser.add_argument("file", type=pathlib.Path, metavar="FILE", help="where to write it")
    path: pathlib.Path = parser.parse_args().file
    try:
        write(path)
    except OSError as error:
        parser.error(f"cannot write {path}: {error.strerror}")


if __name__ == "__main__":
    main()
