"""The parts of the bench, which are measured and published separately.

Separate parts allow measuring what takes minutes without what takes hours.
"""

from collections.abc import Mapping
from typing import Final

MINUTES: Final = "minutes"
PARTS: Final[Mapping[str, str]] = {
    MINUTES: "Throughput and latency",
    "depth": "Millions of jobs",
    "held": "With a transaction that stays open",
    "dead": "Dead workers",
    "writes": "Writes of idle workers",
    "starved": "On a busy machine",
    "restart": "After a restart of PostgreSQL",
    "objects": "Ten thousand objects in a cluster",
}
"""The heading of each part on the page, in the order of measuring."""
EVERY: Final = "all"
"""Selects all parts."""
