"""Measures whole runs of `workron run`, from the start of the program to its exit."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Final

from bench.figure import Against, Figure, Side
from bench.limit import processes

WORKRON: Final = pathlib.Path(sys.executable).with_name("workron")
_FLOW: Final = """
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {{name: bench}}
spec:
  tasks: [{{name: work, count: {jobs}, argv: ["true"]}}]
"""


def figures(jobs: int) -> Iterator[Figure]:
    """Run no-op commands, in memory and with a SQLite file."""
    for slots in (2, 8):
        limit = processes.spawning(jobs, at_once=slots, argv=processes.TRUE)
        for store in ("memory", "sqlite"):
            title = f"`workron run`, {store}, {slots} slots, `true`"
            yield Figure(
                f"run-{store}-{slots}", "jobs/s", _running(title, store, jobs, slots),
                [Against(limit)],
            )  # fmt: skip


def _running(title: str, store: str, jobs: int, slots: int) -> Side:
    def measure() -> float:
        with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder:
            flow = pathlib.Path(folder) / "flow.yaml"
            flow.write_text(_FLOW.format(jobs=jobs))
            url = "memory:" if store == "memory" else f"sqlite:///{folder}/run.db"
            command = [str(WORKRON), "run", str(flow), "--store", url, "--slots", str(slots)]
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return jobs / (time.perf_counter() - began)

    return Side(title, measure)
