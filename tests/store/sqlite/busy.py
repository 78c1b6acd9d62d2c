"""A process that completes jobs and prints the answered ones; `test_killed_process` kills it."""

import asyncio
import random
import sys
from pathlib import Path

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import mint, mint_boot, report_on
from tests.store.sqlite import opening
from workron.store.types import Registration, ReportResult

_WIDTH = 20_000


async def _main(path: Path) -> None:
    store = await opening.open_store(path)
    if not await store.list_runs():
        await store.submit([plans.dag(a=task(count=_WIDTH), b=task("a", count=_WIDTH, each=True))])
    token = await store.ensure_pool(plans.NAMESPACE, "default")
    session = await store.register(Registration(token, "busy", mint_boot(), slots=10))
    claimed = await store.claim(session.key, mint(10))
    while claimed:
        ends = [report_on(one, result=random.random()) for one in claimed]
        completed = await store.complete(session.key, ends, mint(10))
        assert set(completed.answers) == {ReportResult.ACCEPTED}
        sys.stdout.write(" ".join(str(end.job) for end in ends) + "\n")
        sys.stdout.flush()
        claimed = completed.claimed


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
