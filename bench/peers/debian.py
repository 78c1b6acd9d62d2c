"""Tools from Debian packages, unpacked into a folder without changing the system."""

from __future__ import annotations

import getpass
import pathlib
import subprocess
from typing import Final

from bench.peers.peer import Kit

_TIMEOUT_SECONDS: Final = 300


def program(kit: Kit, name: str) -> pathlib.Path | None:
    """Find a program of a tool, if that is installed."""
    path = kit.folder / "usr" / "bin" / name
    return path if path.is_file() else None


def _kit(package: str) -> Kit:
    """Fetch it from the mirror that this machine installs from."""

    def put(folder: pathlib.Path, _: str) -> None:
        # As root it would rather be somebody else, who may not write here.
        oneself = f"APT::Sandbox::User={getpass.getuser()}"
        _run(folder, "apt-get", "--quiet", "--option", oneself, "download", package)
        (archive,) = folder.glob("*.deb")
        _run(folder, "dpkg-deb", "--extract", archive.name, ".")
        archive.unlink()

    return Kit(package, put)


def _run(folder: pathlib.Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, timeout=_TIMEOUT_SECONDS)


NINJA: Final = _kit("ninja-build")
PARALLEL: Final = _kit("parallel")
