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

    rounds: Mapping[str, int]
    """Of each part."""
    jobs: Mapping[str, int]
    long: Mapping[str, int]
    """The sizes and seconds of what takes long."""
    server: Mapping[str, str]
    peers: Mapping[str, str]


def read(instead: str | None = None) -> Config:
    """Read the file; with the numbers of `smoke` or `try`, where these are asked for."""
    given = tomllib.loads(_FILE.read_text("utf-8"))
    sizes = {**given, **given.get(instead or "", {})}
    return Config(sizes["rounds"], sizes["jobs"], sizes["long"], given["server"], given["peers"])
