"""Saves what a cluster knows when a test has failed: logs, events, objects and rows."""

from __future__ import annotations

import pathlib
import re
import shutil
from typing import TYPE_CHECKING, Final

from e2e.release import RELEASE_NAMESPACE

if TYPE_CHECKING:
    from e2e.release import Release


FOLDER: Final = pathlib.Path(__file__).parents[1] / ".e2e"
_ALL: Final = "--all-namespaces"
_COMMANDS: Final = {
    "events": ("events", _ALL),
    "pods": ("get", "pods,nodes", _ALL, "-o", "wide"),
    "objects.yaml": ("get", "wj,wflow,wpool,replicasets", _ALL, "-o", "yaml"),
    "leases": ("get", "leases", _ALL),
}
_TABLES: Final = "worker", "running", "waiting", "deferred", "ready", "done", "attempt", "run"
_NEWEST_ROWS: Final = "SELECT to_jsonb(t) FROM workron.{} t ORDER BY 1 DESC LIMIT 500"
_TAIL: Final = "--tail=20000"


def save(test: str, release: Release) -> str:
    """Write everything into a folder of this test, and return a line that names it."""
    folder = FOLDER / re.sub(r"[^\w.-]+", "_", test)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cluster = release.cluster
    for name, words in _COMMANDS.items():
        done = cluster.try_kubectl(*words)
        (folder / name).write_text(done.stdout + done.stderr)
    for namespace, pod in _pods(release):
        for options in ((), ("--previous",)):
            logs = ("logs", "-n", namespace, pod, "--all-containers", "--prefix", _TAIL)
            if text := cluster.try_kubectl(*logs, *options).stdout:
                name = "".join((namespace, ".", pod, *options, ".log"))
                (folder / name).write_text(text)
    for table in _TABLES:
        try:
            (folder / f"{table}.jsonl").write_text(release.sql(_NEWEST_ROWS.format(table)))
        except AssertionError as error:
            (folder / f"{table}.jsonl").write_text(str(error))
    return f"saved in {folder}"


def _pods(release: Release) -> list[tuple[str, str]]:
    """Return namespace and name of the pods of Workron: controllers, database, workers."""
    output = release.cluster.try_kubectl(
        *("get", "pods", _ALL, "--no-headers", "-o"),
        "custom-columns=:metadata.namespace,:metadata.name,:metadata.labels.app\\.kubernetes\\.io/name",
    ).stdout
    rows = [line.split() for line in output.splitlines()]
    return [
        (row[0], row[1])
        for row in rows
        if row[0] == RELEASE_NAMESPACE or row[2].startswith("workron")
    ]
