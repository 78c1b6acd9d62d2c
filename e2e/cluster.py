"""A Kubernetes cluster, used through kubectl as a person does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pathlib


_TIMEOUT_SECONDS: Final = 300
_RETRY_PAUSES: Final = (1, 3, 10, 30)
_TRANSIENT: Final = re.compile(
    "refused|timed out|timeout|deadline exceeded|too busy|EOF|InternalError"
)

Completed = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Cluster:
    """One cluster, given by its kubeconfig."""

    config: pathlib.Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a program that talks to this cluster."""
        return {**os.environ, "KUBECONFIG": str(self.config)}

    @property
    def name(self) -> str:
        """The name that kind knows it by."""
        return self.kubectl("config", "current-context").strip().removeprefix("kind-")

    def try_kubectl(self, *words: object, stdin: str | None = None) -> Completed:
        """Run kubectl, which may fail."""
        return subprocess.run(
            ["kubectl", *map(str, words)],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )

    def kubectl(self, *words: object, stdin: str | None = None) -> str:
        """Run kubectl, which must succeed, and return its output."""
        done = self.try_kubectl(*words, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(map(str, words))}:\n{done.stderr}"
        return done.stdout

    def get_json(self, *words: object) -> Any:
        """Return what `kubectl get -o json` prints; retries while the API server is busy."""
        done = self.try_kubectl("get", *words, "-o", "json")
        for pause in _RETRY_PAUSES:
            if done.returncode == 0 or not _TRANSIENT.search(done.stderr):
                break
            time.sleep(pause)
            done = self.try_kubectl("get", *words, "-o", "json")
        assert done.returncode == 0, f"kubectl get {' '.join(map(str, words))}:\n{done.stderr}"
        return json.loads(done.stdout)
