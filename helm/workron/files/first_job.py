"""Runs one Job through the API server, as a user does, and waits for its end.

`helm test` runs it with a namespace that may have workers as its argument. It prints each change of
the Job's status, and exits with 1 if the Job does not succeed in time.
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
_TIMEOUT_SECONDS = 280.0
"""Less than the 300 s of `helm test`, so that this program reports what is wrong."""


def run(
    cluster: kube.Cluster,
    namespace: str,
    report: Callable[[str], object],
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> bool:
    """Run a Job, and return whether it succeeded."""
    jobs = f"/apis/workron.dev/v1alpha1/namespaces/{namespace}/workronjobs"
    name = cluster.create(jobs, _JOB)["metadata"]["name"]
    report(f"Job {namespace}/{name}")
    deadline = monotonic() + _TIMEOUT_SECONDS
    status: dict[str, Any] = {}
    last_line = ""
    while "finishedAt" not in status and monotonic() < deadline:
        sleep(1)
        status = cluster.get(f"{jobs}/{name}").get("status") or {}
        if (line := _line(status)) != last_line:
            last_line = line
            report(line)
    cluster.delete(f"{jobs}/{name}")
    if "finishedAt" not in status:
        report(f"the Job did not finish within {_TIMEOUT_SECONDS:g} s")
    return status.get("phase") == "Succeeded"


def _line(status: dict[str, Any]) -> str:
    parts = (status.get(name) for name in ("phase", "reason", "message", "outputTail"))
    return ": ".join(str(part).strip() for part in parts if part)


if __name__ == "__main__":
    try:
        has_succeeded = run(kube.in_pod(), sys.argv[1], lambda line: print(line, flush=True))
    except (kube.RequestError, OSError) as error:
        sys.exit(str(error))
    sys.exit(0 if has_succeeded else 1)
