"""A peer: another system, installed in its own folder, that the bench compares Workron with."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.config import HOME
from bench.draining import Queue

_FOLDER: Final = HOME / "peers"
_MARK: Final = ".installed"


@dataclass(frozen=True, slots=True)
class Kit:
    """Something of others that installs itself."""

    name: str
    """Under which `config.toml` has its version."""
    put: Callable[[pathlib.Path, str], None]
    """Puts this version of it into an empty folder."""

    @property
    def folder(self) -> pathlib.Path:
        """Where it is, if it is installed."""
        return _FOLDER / self.name

    def is_installed(self, version: str) -> bool:
        """Tell whether it is here, whole, and in this version."""
        mark = self.folder / _MARK
        return mark.is_file() and mark.read_text("utf-8") == version

    def install(self, version: str) -> None:
        """Put it here, unless it is; what was begun and not finished is begun anew."""
        if self.is_installed(version):
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.put(self.folder, version)
        (self.folder / _MARK).write_text(version, "utf-8")


@dataclass(frozen=True, slots=True)
class Peer(Kit):
    """One that drains jobs of a PostgreSQL."""

    queue: Callable[[pathlib.Path], Queue]
    """Gives the system that was put into a folder."""
    divisor: int = 1
    """How many times fewer jobs than ours it gets in a round, where as many would take it minutes;
    what is compared are rates."""

    def share(self, jobs: int) -> int:
        """Say how many it gets of the jobs of a round."""
        return max(1, jobs // self.divisor)
