"""Jobs of DBOS: `load URL JOBS` creates its tables and jobs, `work URL` drains them.

It runs in the virtual environment of this peer and imports nothing of Workron.
"""

from __future__ import annotations

import sys
import threading
from typing import Final

import sqlalchemy  # type: ignore[import-not-found]
from dbos import DBOS, DBOSClient  # type: ignore[import-not-found]

_NAME: Final = "bench"
_AT_ONCE: Final = 1_000
_POLL_SECONDS: Final = 0.01
"""As in its own benchmark; otherwise the default poll each second would be the limit."""
_THREADS: Final = 64
"""Without a limit it starts a thread for each claimed workflow."""


def _launch(url: str) -> None:
    DBOS(
        config={
            "name": _NAME,
            "system_database_url": url,
            "log_level": "WARNING",
            "max_executor_threads": _THREADS,
        }
    )
    DBOS.workflow(name="nothing")(_nothing)
    DBOS.launch()


def _load(url: str, jobs: int) -> None:
    _launch(url)
    DBOS.register_queue(_NAME, worker_concurrency=_AT_ONCE, polling_interval_sec=_POLL_SECONDS)
    DBOS.destroy()
    client = DBOSClient(system_database_url=url, application_name=_NAME)
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    # It has no bulk insert: one by one, in one transaction.
    with engine.begin() as connection:
        for _ in range(jobs):
            client.enqueue_in_transaction(
                connection, {"queue_name": _NAME, "workflow_name": "nothing"}
            )
    client.destroy()


def _work(url: str) -> None:
    _launch(url)
    threading.Event().wait()


def _nothing() -> None:
    """Do nothing, as a job."""


if __name__ == "__main__":
    what, url, *jobs = sys.argv[1:]
    if what == "load":
        _load(url, int(jobs[0]))
    else:
        _work(url)
