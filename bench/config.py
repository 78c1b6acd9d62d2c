"""Reads `config.toml`: what the bench measures, in which sizes, and with which versions."""

from __future__ import annotations

import pathlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_FILE: Final = pathlib.Path(__file__).with_name("config.toml")
HOME: Final = pathlib.Path(__file__).parents[1] / ".bench"
"""Results and installed peers; git ignores it."""


@dataclass(frozen=True, slots=True)
class Config:
    """One run of the bench."""

    rounds: Mapping[str, int]
    """Number of rounds of each part."""
    jobs: Mapping[str, int]
    long: Mapping[str, int]
    """Sizes and durations of the long figures."""
    server: Mapping[str, str]
    peers: Mapping[str, str]


def read(instead: str | None = None) -> Config:
    """Read the file, with the numbers of `smoke` or `try` instead if one is given."""
    given = tomllib.loads(_FILE.read_text("utf-8"))
    sizes = {**given, **given.get(instead or "", {})}
    return Config(sizes["rounds"], sizes["jobs"], sizes["long"], given["server"], given["peers"])
