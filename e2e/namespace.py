"""The namespace of one test file: what a test does and observes in it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from e2e.cluster import Cluster, Completed


_TIMEOUT_SECONDS: Final = 120
_POLL_SECONDS: Final = 0.5
_API: Final = "/apis/workron.dev/v1alpha1"
KINDS: Final = "workronjobs", "workronflows", "workerpools"
_RUNNER: Final = ("-c", "runner", "--")
_LIST_COMMANDS: Final = """
import glob
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        print(open(path).read().replace(chr(0), " "))
    except OSError:
        pass
"""


@dataclass(frozen=True)
class Namespace:
    """One namespace of a cluster."""

    cluster: Cluster
    name: str

    def kubectl(self, *words: object, stdin: str | None = None) -> str:
        """Run kubectl in this namespace; it must succeed."""
        return self.cluster.kubectl("-n", self.name, *words, stdin=stdin)

    def try_kubectl(self, *words: object, stdin: str | None = None) -> Completed:
        """Run kubectl in this namespace; it may fail."""
        return self.cluster.try_kubectl("-n", self.name, *words, stdin=stdin)

    def apply(self, *manifests: dict[str, Any]) -> None:
        """Apply manifests in one request."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(items))

    def clear(self) -> None:
        """Delete all objects of Workron, and wait until no worker pod is left."""
        known = self.kubectl("get", "crd", "-o", "name")
        kinds = [kind for kind in KINDS if kind in known]
        for kind in kinds:
            # One request for the collection: kubectl would delete thousands of objects one by one.
            self.kubectl("delete", "--raw", f"{_API}/namespaces/{self.name}/{kind}")
        wait_until(lambda: not any(map(self.objects, kinds)), "no object is left")
        wait_until(lambda: not self.objects("pods"), "no pod is left")

    def patch(self, name: str, spec: dict[str, Any], kind: str = "wj") -> None:
        """Change fields of an object's spec."""
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def objects(self, kind: str, *words: object) -> list[dict[str, Any]]:
        """Return all objects of a kind."""
        items: list[dict[str, Any]] = self.cluster.get_json("-n", self.name, kind, *words)["items"]
        return items

    def status(self, name: str, kind: str = "wj") -> dict[str, Any]:
        """Return the status of an object."""
        body: dict[str, Any] = self.cluster.get_json("-n", self.name, kind, name)
        return dict(body.get("status", {}))

    def phases(self) -> dict[str, str]:
        """Return the phase of each Job by its name."""
        return {
            job["metadata"]["name"]: job.get("status", {}).get("phase", "")
            for job in self.objects("wj")
        }

    def wait_for_phase(
        self, name: str, wanted: str, kind: str = "wj", seconds: float = _TIMEOUT_SECONDS
    ) -> dict[str, Any]:
        """Wait for `Succeeded` or `Waiting/Upstream`, a phase with a reason; return the status."""
        deadline = time.monotonic() + seconds
        while True:
            status = self.status(name, kind)
            current = "/".join(status[key] for key in ("phase", "reason") if status.get(key))
            if current == wanted or (status.get("phase") == wanted and "/" not in wanted):
                return status
            assert time.monotonic() < deadline, f"{kind}/{name} is {current}, expected {wanted}"
            time.sleep(_POLL_SECONDS)

    def wait_for_condition(self, pool: str, kind: str, status: str, reason: str) -> dict[str, Any]:
        """Wait for a condition of a WorkerPool, and return it."""
        wanted = {"type": kind, "status": status, "reason": reason}

        def matching() -> list[dict[str, Any]]:
            conditions = self.status(pool, "wpool").get("conditions", ())
            return [one for one in conditions if wanted.items() <= one.items()]

        wait_until(matching, f"condition {kind}={status} {reason} of pool {pool}")
        return matching()[0]

    def pods(self, pool: str) -> list[dict[str, Any]]:
        """Return the pods of a pool that are not being deleted."""
        pods = self.objects("pods", "-l", f"workron.dev/pool={pool}")
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def run_id_sql(self, name: str) -> str:
        """Return an SQL expression for the id of the newest run of this name."""
        condition = f"namespace = '{self.name}' AND name = '{name}'"
        return f"(SELECT max(id) FROM workron.run WHERE {condition})"

    def ended_states_sql(self, name: str) -> str:
        """Return a query for the ended jobs of the newest run of this name, and their states."""
        return f"""
            SELECT string_agg(j.name || ':' || d.state, ' ' ORDER BY j.id)
            FROM workron.job j JOIN workron.done d ON d.job = j.id
            WHERE j.kind = 'Job' AND j.run = {self.run_id_sql(name)}
        """

    def pod_running(self, job: str) -> dict[str, Any]:
        """Wait until a job runs, and return the pod of its worker."""
        worker = self.wait_for_phase(job, "Running")["worker"]
        [pod] = [pod for pod in self.objects("pods") if pod["metadata"]["uid"] == worker]
        return pod

    def exec_in_runner(self, pod: dict[str, Any], *words: object) -> str:
        """Run a program in the container where the commands of a worker run."""
        return self.kubectl("exec", pod["metadata"]["name"], *_RUNNER, *words)

    @contextlib.contextmanager
    def watch_phases(self, kind: str, name: str) -> Iterator[list[str]]:
        """Record the phase of an object at each of its changes."""
        phases: list[str] = []
        phase = ("-o", 'jsonpath={.status.phase}{"\\n"}')
        words = ("-n", self.name, "get", kind, "--field-selector", f"metadata.name={name}")
        with subprocess.Popen(
            ["kubectl", *words, "--watch", *phase],
            env=self.cluster.environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as watch:
            try:
                yield phases
            finally:
                # This reads what has arrived; the very last change may be missing.
                watch.terminate()
                assert watch.stdout is not None
                phases += watch.stdout.read().splitlines()

    def running_commands(self, pod: dict[str, Any]) -> str:
        """Return the command lines of all processes in a worker's runner container."""
        return self.exec_in_runner(pod, "python3", "-c", _LIST_COMMANDS)

    def finish_commands(self, pod: dict[str, Any], *names: str) -> None:
        """Let commands of `command_waiting_for` end; the commands of a pod share /tmp."""
        self.exec_in_runner(pod, "touch", *(f"/tmp/{name}" for name in names))


def command_waiting_for(name: str) -> str:
    """Return a command that runs until `Namespace.finish_commands` is called with this name."""
    return f"until test -e /tmp/{name}; do sleep 0.1; done"


def wait_until(
    condition: Callable[[], object], description: str, seconds: float = _TIMEOUT_SECONDS
) -> None:
    """Poll until the condition holds; fail after a timeout."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"timed out after {seconds:g} s: {description}"
        time.sleep(_POLL_SECONDS)
