"""The parts that the bench has: each is measured, and published, by itself.

What takes hours would else be measured all at once or never.
"""

from collections.abc import Mapping
from typing import Final

MINUTES: Final = "minutes"
PARTS: Final[Mapping[str, str]] = {
    MINUTES: "What takes minutes",
    "depth": "Over millions of jobs",
    "held": "Beside a transaction that is left open",
    "dead": "Dead workers",
    "writes": "What workers write by themselves",
    "starved": "On a machine that is busy with something else",
    "restart": "After a death of PostgreSQL",
    "objects": "Ten thousand objects of a cluster",
}
"""By name, in the order in which they are measured and told; with what heads them on the page."""
EVERY: Final = "all"
"""Asks for all of them."""
