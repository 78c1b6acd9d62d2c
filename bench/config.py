"""What is measured, and with what: read from `config.toml`."""

from __future__ import annotations

import pathlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_FILE: Final = pathlib.Path(__file__).with_name("config.toml")
HOME: Final = pathlib.Path(__file__).parents[1] / ".bench"
"""Of results, and of the peers that were installed; of no interest to git."""


@dataclass(frozen=True, slots=True)
class Config:
    """One run of the bench."""

    rounds: int
    jobs: Mapping[str, int]
    server: Mapping[str, str]
    peers: Mapping[str, str]


def read(*, is_smoke: bool) -> Config:
    """Read the file; for a smoke with its small numbers."""
    given = tomllib.loads(_FILE.read_text("utf-8"))
    sizes = given["smoke"] if is_smoke else given
    return Config(sizes["rounds"], sizes["jobs"], given["server"], given["peers"])
