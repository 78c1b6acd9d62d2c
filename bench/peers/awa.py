"""awa: a runtime in Rust that calls handlers in Python.

What ended well is a batch of ids in a table; what took a detour is a row in another one. Both are
counted, and its script keeps them from being thrown away within seconds.
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
    # A round of a few seconds tells its rate as well as a longer one.
    divisor=3,
)
