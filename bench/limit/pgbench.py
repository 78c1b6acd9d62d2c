"""Measures how fast pgbench alone claims and completes jobs on this machine."""

from __future__ import annotations

import asyncio
import re
import subprocess
from typing import Final

from bench import server
from bench.figure import Side
from bench.limit import tables

_CLIENTS: Final = 2
_TIMEOUT_SECONDS: Final = 120
_RATE: Final = re.compile(r"^tps = ([\d.]+) ", re.MULTILINE)


def draining(dsn: str, jobs: int, *, batch: int) -> Side:
    """Measure claiming and completing a batch of jobs per transaction, in jobs a second."""
    title = f"pgbench, {_CLIENTS} clients, claim to done, {batch} a transaction"
    return Side(title, lambda: asyncio.run(_drain(dsn, jobs, batch)))


async def _drain(dsn: str, jobs: int, batch: int) -> float:
    # Rounded up, so that every transaction finds a whole batch.
    transactions = -(-jobs // (_CLIENTS * batch))
    async with tables.drained(dsn, transactions * _CLIENTS * batch) as url:
        return batch * await asyncio.to_thread(_rate, url, transactions, batch)


def _rate(url: str, transactions: int, batch: int) -> float:
    """Return transactions a second, excluding the time to connect."""
    script = tables.SQL / "take_then_end.sql"
    command = [
        *(server.program(url, "pgbench"), "--no-vacuum", "--protocol=prepared"),
        *(f"--client={_CLIENTS}", f"--jobs={_CLIENTS}", f"--transactions={transactions}"),
        *(f"--file={script}", f"--define=batch={batch}", url),
    ]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS
    )
    if (found := _RATE.search(result.stdout)) is None or result.returncode:
        raise RuntimeError(f"pgbench failed: {result.stderr[-2000:]}")
    return float(found[1])
