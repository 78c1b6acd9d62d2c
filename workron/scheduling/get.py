"""Get: a run as objects, the workflow first and then each of its jobs.

Called by `workron get -o json` and `workron run -o json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workron.core.plan import Kind
from workron.scheduling import present

if TYPE_CHECKING:
    from workron.store.protocol import ReaderDoor, RootRow


async def get(reader: ReaderDoor, root: RootRow) -> list[dict[str, Any]]:
    """Give the objects of one root, in the order in which they were submitted."""
    rows, specs = await reader.jobs(root.root), await reader.specs(root.root)
    objects = []
    if root.kind is Kind.WORKFLOW:
        objects.append(present.workflow(root, rows, specs[root.root]))
    for row in rows:
        if row.kind is Kind.JOB:
            output = await reader.output(row.job) if row.attempts else b""
            objects.append(present.job(root, row, specs[row.job], output))
    return objects
