"""Tools from Debian packages, unpacked into a folder without changing the system."""

from __future__ import annotations

import getpass
import pathlib
import subprocess
from typing import Final

from bench.peers.peer import Kit

_TIMEOUT_SECONDS: Final = 300


def program(kit: Kit, name: str) -> pathlib.Path | None:
    """Return the path of a program of a tool, if that is installed."""
    path = kit.folder / "usr" / "bin" / name
    return path if path.is_file() else None


def _kit(package: str) -> Kit:
    """Download it from the mirror of this machine."""

    def put(folder: pathlib.Path, _: str) -> None:
        # As root, apt would download as another user, who may not write here.
        user_option = f"APT::Sandbox::User={getpass.getuser()}"
        _run(folder, "apt-get", "--quiet", "--option", user_option, "download", package)
        (archive,) = folder.glob("*.deb")
        _run(folder, "dpkg-deb", "--extract", archive.name, ".")
        archive.unlink()

    return Kit(package, put)


def _run(folder: pathlib.Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, timeout=_TIMEOUT_SECONDS)


NINJA: Final = _kit("ninja-build")
PARALLEL: Final = _kit("parallel")
