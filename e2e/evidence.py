"""What a cluster says of itself when a test has failed: logs, events, objects, rows."""

from __future__ import annotations

import pathlib
import re
import shutil
from typing import TYPE_CHECKING, Final

from e2e.release import HOME

if TYPE_CHECKING:
    from e2e.release import Release


FOLDER: Final = pathlib.Path(__file__).parents[1] / ".e2e"
_ALL: Final = "--all-namespaces"
_ASKED: Final = {
    "events": ("events", _ALL),
    "pods": ("get", "pods,nodes", _ALL, "-o", "wide"),
    "objects.yaml": ("get", "wj,wflow,wpool,replicasets", _ALL, "-o", "yaml"),
    "leases": ("get", "leases", _ALL),
}
_TABLES: Final = "worker", "running", "waiting", "deferred", "ready", "done", "attempt", "root"
_LATEST: Final = "SELECT to_jsonb(t) FROM workron.{} t ORDER BY 1 DESC LIMIT 500"
_LINES: Final = "--tail=20000"


def saved(test: str, release: Release) -> str:
    """Write all down, and say where."""
    folder = FOLDER / re.sub(r"[^\w.-]+", "_", test)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cluster = release.cluster
    for name, words in _ASKED.items():
        done = cluster.asked(*words)
        (folder / name).write_text(done.stdout + done.stderr)
    for namespace, pod in _pods(release):
        for options in ((), ("--previous",)):
            logs = ("logs", "-n", namespace, pod, "--all-containers", "--prefix", _LINES)
            if text := cluster.asked(*logs, *options).stdout:
                name = "".join((namespace, ".", pod, *options, ".log"))
                (folder / name).write_text(text)
    for table in _TABLES:
        try:
            (folder / f"{table}.jsonl").write_text(release.sql(_LATEST.format(table)))
        except AssertionError as error:
            (folder / f"{table}.jsonl").write_text(str(error))
    return f"saved in {folder}"


def _pods(release: Release) -> list[tuple[str, str]]:
    """Name the pods that are ours: controllers, the database, workers."""
    found = release.cluster.asked(
        *("get", "pods", _ALL, "--no-headers", "-o"),
        "custom-columns=:metadata.namespace,:metadata.name,:metadata.labels.app\\.kubernetes\\.io/name",
    ).stdout
    rows = [line.split() for line in found.splitlines()]
    return [(row[0], row[1]) for row in rows if row[0] == HOME or row[2].startswith("workron")]
