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
    """A third-party system that can be installed."""

    name: str
    """The key of its version in `config.toml`."""
    put: Callable[[pathlib.Path, str], None]
    """Installs a version into an empty folder."""

    @property
    def folder(self) -> pathlib.Path:
        """Where it is installed."""
        return _FOLDER / self.name

    def is_installed(self, version: str) -> bool:
        """Whether it is completely installed in this version."""
        mark = self.folder / _MARK
        return mark.is_file() and mark.read_text("utf-8") == version

    def install(self, version: str) -> None:
        """Install it unless it is installed; an incomplete installation is repeated."""
        if self.is_installed(version):
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.put(self.folder, version)
        (self.folder / _MARK).write_text(version, "utf-8")


@dataclass(frozen=True, slots=True)
class Peer(Kit):
    """A peer that drains jobs on PostgreSQL."""

    queue: Callable[[pathlib.Path], Queue]
    """Returns the system that is installed in a folder."""
    divisor: int = 1
    """How many times fewer jobs than ours it gets in a round, where as many would take it minutes;
    what is compared are rates."""

    def share(self, jobs: int) -> int:
        """Return its number of jobs in a round."""
        return max(1, jobs // self.divisor)
