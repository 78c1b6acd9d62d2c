"""Get: a run as objects, the workflow first and then each of its jobs.

Called by `workron get -o json` and `workron run -o json`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from workron.core.plan import Kind
from workron.scheduling import present, tail

if TYPE_CHECKING:
    from workron.store.protocol import JobRow, ReaderDoor, RootRow

_AT_ONCE: Final = 100
"""So many outputs are asked for together: one by one, nearly all of the time is the way there."""


async def get(reader: ReaderDoor, root: RootRow) -> list[dict[str, Any]]:
    """Give the objects of one root, in the order in which they were submitted."""
    rows, specs = await reader.jobs(root.root), await reader.specs(root.root)
    objects = []
    if root.kind is Kind.WORKFLOW:
        objects.append(present.workflow(root, rows, specs[root.root]))
    commands = [row for row in rows if row.kind is Kind.JOB]
    for at in range(0, len(commands), _AT_ONCE):
        some = commands[at : at + _AT_ONCE]
        outputs = await asyncio.gather(*(_output(reader, row) for row in some))
        objects += [
            present.job(root, row, specs[row.job], output)
            for row, output in zip(some, outputs, strict=True)
        ]
    return objects


async def _output(reader: ReaderDoor, row: JobRow) -> bytes:
    return await reader.output(row.job, last=tail.READ_BYTES) if row.attempts else b""
