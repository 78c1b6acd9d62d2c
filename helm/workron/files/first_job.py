"""Runs a Job as a user does, through the API server, and waits for its end.

Called by `helm test`, with a namespace in which workers may be made. Exit code 1 says that it did
not succeed in time, and what it said prints why.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import kube

_JOB = {
    "apiVersion": "workron.dev/v1alpha1",
    "kind": "Job",
    "metadata": {"generateName": "workron-test-"},
    "spec": {"command": "echo it works", "timeout": "30s", "ttlSecondsAfterFinished": 600},
}
_PATIENCE_SECONDS = 280.0
"""A little less than `helm test` has, so that it is us who say what is wrong."""

Say = Callable[[str], object]


def run(
    cluster: kube.Cluster,
    namespace: str,
    say: Say,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> bool:
    """Run one; tell whether it succeeded."""
    folder = f"/apis/workron.dev/v1alpha1/namespaces/{namespace}/workronjobs"
    name = cluster.create(folder, _JOB)["metadata"]["name"]
    say(f"Job {namespace}/{name}")
    until = monotonic() + _PATIENCE_SECONDS
    status: dict[str, Any] = {}
    told = ""
    while "finishedAt" not in status and monotonic() < until:
        sleep(1)
        status = cluster.get(f"{folder}/{name}").get("status") or {}
        if (now := _told(status)) != told:
            told = now
            say(told)
    cluster.delete(f"{folder}/{name}")
    if "finishedAt" not in status:
        say(f"it has not ended within {_PATIENCE_SECONDS:g} s")
    return status.get("phase") == "Succeeded"


def _told(status: dict[str, Any]) -> str:
    parts = (status.get(name) for name in ("phase", "reason", "message", "outputTail"))
    return ": ".join(str(part).strip() for part in parts if part)


if __name__ == "__main__":
    try:
        has_succeeded = run(kube.in_pod(), sys.argv[1], lambda line: print(line, flush=True))
    except (kube.RefusedError, OSError) as error:
        sys.exit(str(error))
    sys.exit(0 if has_succeeded else 1)
