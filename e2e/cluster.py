"""A real Kubernetes cluster, and kubectl as a person uses it. Made by `harness`."""

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


_PATIENCE_SECONDS: Final = 300
_PAUSES: Final = (1, 3, 10, 30)
_BUSY: Final = re.compile("refused|timed out|timeout|deadline exceeded|too busy|EOF|InternalError")

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Cluster:
    """One cluster, by its kubeconfig."""

    config: pathlib.Path

    @property
    def environment(self) -> dict[str, str]:
        """What programs that are to reach it are started with."""
        return {**os.environ, "KUBECONFIG": str(self.config)}

    @property
    def name(self) -> str:
        """What kind calls it."""
        return self.kubectl("config", "current-context").strip().removeprefix("kind-")

    def asked(self, *words: object, given: str | None = None) -> Done:
        """Run kubectl to its end, however that is."""
        return subprocess.run(
            ["kubectl", *map(str, words)],
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )

    def kubectl(self, *words: object, given: str | None = None) -> str:
        """Do the same where it must not fail, and give what it printed."""
        done = self.asked(*words, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(map(str, words))}:\n{done.stderr}"
        return done.stdout

    def read(self, *words: object) -> Any:
        """Get objects as they are; a server that is too busy to answer is asked again."""
        done = self.asked("get", *words, "-o", "json")
        for pause in _PAUSES:
            if done.returncode == 0 or not _BUSY.search(done.stderr):
                break
            time.sleep(pause)
            done = self.asked("get", *words, "-o", "json")
        assert done.returncode == 0, f"kubectl get {' '.join(map(str, words))}:\n{done.stderr}"
        return json.loads(done.stdout)
