"""awa: a runtime in Rust that calls handlers in Python.

Succeeded jobs are a batch of ids in one table, other jobs rows in another. The bench counts both,
and its script keeps awa from deleting them within seconds.
"""

from __future__ import annotations

from typing import Final

from bench.peers import environment
from bench.peers.peer import Peer

_ENDED: Final = """
    SELECT (SELECT count(*) FROM awa.done_entries WHERE state = 'completed')
        + (SELECT coalesce(sum(cardinality(job_ids)), 0) FROM awa.receipt_completion_batches)
"""

PEER: Final = Peer(
    "awa-pg",
    environment.put("awa-pg"),
    environment.queue("awa, Python handlers", "on_awa.py", _ENDED),
    # A round of a few seconds shows its rate as well as a longer one.
    divisor=3,
)
