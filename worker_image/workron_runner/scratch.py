"""The places of attempts on disk, and the environment that points into them.

Called by `runner` and by `workron_worker.local_executor`. All of one boot stands under one folder
that carries the boot in its name, so that a later process can clear what a killed one left
(`workron_worker.orphans`).
"""

from __future__ import annotations

import itertools
import os
import pathlib
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workron_runner import broom

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

BOOT_VARIABLE: Final = "WORKRON_BOOT"
_DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ScratchError(Exception):
    """This machine has no room for an attempt; no fault of the job."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one attempt runs; its files lie beside its folder, so that this is empty at first."""

    directory: pathlib.Path
    """Its cwd, HOME and TMPDIR."""
    inputs: pathlib.Path
    result: pathlib.Path

    def within(self, workdir: str | None) -> str:
        """Resolve a job's `workdir`; a relative one lies in the attempt's own folder."""
        return str(self.directory / workdir) if workdir else str(self.directory)


class Scratch:
    """The folder of one boot, with a fresh folder in it for each attempt."""

    def __init__(self, boot: UUID) -> None:
        self._boot = boot
        self._root = folder(boot)
        try:
            self._root.mkdir(mode=0o700)
        except OSError as error:
            raise ScratchError(f"{self._root} cannot be made: {error.strerror}") from error
        self._numbers = itertools.count(1)
        self._broom = broom.Broom()

    def place(self, inputs: str) -> Place:
        """Make the folder of an attempt, with the text of its inputs beside it."""
        number = next(self._numbers)
        place = Place(
            self._root / str(number),
            self._root / f"{number}.inputs.json",
            self._root / f"{number}.result.json",
        )
        try:
            place.directory.mkdir()
            place.inputs.write_text(inputs, encoding="utf-8")
        except OSError as error:
            raise ScratchError(
                f"no folder can be made in {self._root}: {error.strerror}"
            ) from error
        return place

    def leave(self, place: Place) -> None:
        """Have the folder of an attempt removed, with all that its command left."""
        self._broom.take(broom.Litter(place.directory, (place.inputs, place.result)))

    def environment(self, own: Mapping[str, str], place: Place) -> dict[str, str]:
        """Compose what the command sees: nothing of this process but its PATH and language."""
        return {
            "PATH": os.environ.get("PATH", _DEFAULT_PATH),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            "HOME": str(place.directory),
            "TMPDIR": str(place.directory),
            **own,
            "WORKRON_INPUTS": str(place.inputs),
            "WORKRON_RESULT": str(place.result),
            BOOT_VARIABLE: str(self._boot),
        }

    def close(self) -> None:
        """Remove the folder."""
        self._broom.close()
        broom.remove(self._root)


def folder(boot: UUID) -> pathlib.Path:
    """Name the folder under which everything of a boot stands."""
    return pathlib.Path(tempfile.gettempdir()) / f"workron-{boot.hex}"
