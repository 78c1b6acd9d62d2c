"""`python3 -m workron_runner.pack FILE`: writes the runner into one file, to be copied anywhere.

Such a file is what any `python3` runs: `python3 FILE --socket PATH`. In a pod an init container of
our image writes it into a volume, for a container of another image to run.
"""

from __future__ import annotations

import argparse
import pathlib
import zipfile
from typing import Final

_PACKAGE: Final = pathlib.Path(__file__).parent
_ENTRY: Final = "from workron_runner.__main__ import main\n\nmain()\n"


def write(path: pathlib.Path) -> None:
    """Write the file; who runs it finds all of it, or what was there before."""
    new = path.with_name(f"{path.name}.new")
    # Not compressed: a Python may lack the library for that.
    with zipfile.ZipFile(new, "w") as archive:
        archive.writestr("__main__.py", _ENTRY)
        for module in sorted(_PACKAGE.glob("*.py")):
            archive.write(module, f"{_PACKAGE.name}/{module.name}")
    new.chmod(0o644)
    new.replace(path)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser("workron_runner.pack", description="Pack the runner.")
    parser.add_argument("file", type=pathlib.Path, metavar="FILE", help="where to write it")
    path: pathlib.Path = parser.parse_args().file
    try:
        write(path)
    except OSError as error:
        parser.error(f"{path} cannot be written: {error.strerror}")


if __name__ == "__main__":
    main()
