"""A namespace of a cluster that belongs to one test file, and what tests do and see in it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from e2e.cluster import Cluster, Done


_PATIENCE_SECONDS: Final = 120
_LOOK_SECONDS: Final = 0.5
_API: Final = "/apis/workron.dev/v1alpha1"
KINDS: Final = "workronjobs", "workronflows", "workerpools"
_RUNNER: Final = ("-c", "runner", "--")
_COMMANDS: Final = """
import glob
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        print(open(path).read().replace(chr(0), " "))
    except OSError:
        pass
"""


@dataclass(frozen=True)
class Place:
    """One namespace."""

    cluster: Cluster
    namespace: str

    def kubectl(self, *words: object, given: str | None = None) -> str:
        """Run kubectl here."""
        return self.cluster.kubectl("-n", self.namespace, *words, given=given)

    def asked(self, *words: object, given: str | None = None) -> Done:
        """Do the same, also where it fails."""
        return self.cluster.asked("-n", self.namespace, *words, given=given)

    def apply(self, *manifests: dict[str, Any]) -> None:
        """Apply manifests."""
        every = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("apply", "-f", "-", given=json.dumps(every))

    def clear(self) -> None:
        """Remove all that is ours, and wait until no worker is left."""
        known = self.kubectl("get", "crd", "-o", "name")
        kinds = [kind for kind in KINDS if kind in known]
        for kind in kinds:
            # In one request: kubectl would delete thousands of them one by one.
            self.kubectl("delete", "--raw", f"{_API}/namespaces/{self.namespace}/{kind}")
        until(lambda: not any(map(self.all, kinds)), "no object is left")
        until(lambda: not self.all("pods"), "no pod is left")

    def patch(self, name: str, spec: dict[str, Any], kind: str = "wj") -> None:
        """Edit an object, as a person does."""
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def all(self, kind: str, *words: object) -> list[dict[str, Any]]:
        """Give all objects of a kind."""
        found: list[dict[str, Any]] = self.cluster.read("-n", self.namespace, kind, *words)["items"]
        return found

    def status(self, name: str, kind: str = "wj") -> dict[str, Any]:
        """Give the status of an object."""
        found: dict[str, Any] = self.cluster.read("-n", self.namespace, kind, name)
        return dict(found.get("status", {}))

    def phases(self) -> dict[str, str]:
        """Give the phase of each Job."""
        return {
            one["metadata"]["name"]: one.get("status", {}).get("phase", "")
            for one in self.all("wj")
        }

    def until(
        self, name: str, wanted: str, kind: str = "wj", seconds: float = _PATIENCE_SECONDS
    ) -> dict[str, Any]:
        """Wait for an object to be so, `Succeeded` or `Waiting/Upstream`, and give its status."""
        end = time.monotonic() + seconds
        while True:
            status = self.status(name, kind)
            stands = "/".join(status[one] for one in ("phase", "reason") if status.get(one))
            if stands == wanted or (status.get("phase") == wanted and "/" not in wanted):
                return status
            assert time.monotonic() < end, f"{kind}/{name} is {stands}, and not {wanted}"
            time.sleep(_LOOK_SECONDS)

    def condition(self, pool: str, kind: str, status: str, reason: str) -> dict[str, Any]:
        """Wait for a condition of a pool to be so, and give it."""

        def found() -> list[dict[str, Any]]:
            held = self.status(pool, "wpool").get("conditions", ())
            wanted = {"type": kind, "status": status, "reason": reason}
            return [one for one in held if wanted.items() <= one.items()]

        until(found, f"condition {kind}={status} {reason} of pool {pool}")
        return found()[0]

    def pods(self, pool: str) -> list[dict[str, Any]]:
        """Give the pods of a pool that are not about to go."""
        pods = self.all("pods", "-l", f"workron.dev/pool={pool}")
        return [one for one in pods if "deletionTimestamp" not in one["metadata"]]

    def stored(self, name: str) -> str:
        """Say in SQL which job of the database is the newest one of a name."""
        here = f"namespace = '{self.namespace}' AND name = '{name}'"
        return f"(SELECT max(id) FROM workron.root WHERE {here})"

    def pod_of(self, job: str) -> dict[str, Any]:
        """Give the pod of the worker that runs a job."""
        worker = self.until(job, "Running")["worker"]
        [pod] = [one for one in self.all("pods") if one["metadata"]["uid"] == worker]
        return pod

    def inside(self, pod: dict[str, Any], *words: object) -> str:
        """Run a program beside the commands of a worker."""
        return self.kubectl("exec", pod["metadata"]["name"], *_RUNNER, *words)

    @contextlib.contextmanager
    def watching(self, kind: str, name: str) -> Iterator[list[str]]:
        """Note the phase of an object at each of its changes."""
        seen: list[str] = []
        phase = ("-o", 'jsonpath={.status.phase}{"\\n"}')
        words = ("-n", self.namespace, "get", kind, "--field-selector", f"metadata.name={name}")
        with subprocess.Popen(
            ["kubectl", *words, "--watch", *phase],
            env=self.cluster.environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as watch:
            try:
                yield seen
            finally:
                # What has come by now is read; the last change may not have.
                watch.terminate()
                assert watch.stdout is not None
                seen += watch.stdout.read().splitlines()

    def commands(self, pod: dict[str, Any]) -> str:
        """Give the command lines of all that runs beside a worker."""
        return self.inside(pod, "python3", "-c", _COMMANDS)

    def let_go(self, pod: dict[str, Any], *names: str) -> None:
        """Have those end that wait for a file of their name; commands of a pod share a folder."""
        self.inside(pod, "touch", *(f"/tmp/{name}" for name in names))


def waits_for(name: str) -> str:
    """Give a command that runs until it is let go."""
    return f"until test -e /tmp/{name}; do sleep 0.1; done"


def until(holds: Callable[[], object], what: str, seconds: float = _PATIENCE_SECONDS) -> None:
    """Look again and again until it holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"it does not come to that: {what}"
        time.sleep(_LOOK_SECONDS)
