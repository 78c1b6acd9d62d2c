"""The release: the chart, installed, upgraded and uninstalled with Helm as a person does."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.cluster import Cluster


RELEASE_NAMESPACE: Final = "workron"
"""The namespace of the release."""
_ROOT: Final = pathlib.Path(__file__).parents[1]
_CHART: Final = _ROOT / "helm" / "workron"
_WAIT: Final = ("--wait", "--timeout", "10m")
_SQL: Final = ("psql", "--username=workron", "--dbname=workron", "--no-psqlrc", "-At", "-c")


@dataclass(frozen=True)
class Release:
    """One release with the images of this tree."""

    cluster: Cluster
    tag: str
    values: tuple[str, ...] = ()
    program: str = "helm"

    def helm(self, *words: object) -> str:
        """Run Helm in the namespace of the release; it must succeed."""
        done = subprocess.run(
            [self.program, *map(str, words), "--namespace", RELEASE_NAMESPACE],
            env=self.cluster.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self) -> None:
        """Install the chart, and wait until everything is ready."""
        tags = ("--set", f"image.tag={self.tag},workerImage.tag={self.tag}")
        self.helm("install", "workron", _CHART, *tags, *self.values, *_WAIT)

    def upgrade(self, *changed: str) -> None:
        """Change some values, and wait until the rollout is complete."""
        self.helm("upgrade", "workron", _CHART, "--reset-then-reuse-values", *changed, *_WAIT)

    def rollback(self) -> None:
        """Undo the last upgrade, and wait until the rollout is complete."""
        self.helm("rollback", "workron", *_WAIT)

    def uninstall(self) -> None:
        """Delete the worker pools, then uninstall the release, as the docs say."""
        self.cluster.kubectl("delete", "wpool", "--all", "--all-namespaces")
        self.helm("uninstall", "workron", *_WAIT)

    @contextlib.contextmanager
    def controllers_stopped(self) -> Iterator[None]:
        """Scale the controllers to zero, and back afterwards."""
        scale = ("scale", "deploy/workron-controller", "-n", RELEASE_NAMESPACE)
        self.cluster.kubectl(*scale, "--replicas=0")
        label = ("-l", "app.kubernetes.io/name=workron-controller", "-n", RELEASE_NAMESPACE)
        try:
            self.cluster.kubectl("wait", "--for=delete", "pods", *label, "--timeout=120s")
            yield
        finally:
            self.cluster.kubectl(*scale, "--replicas=2")
            self.wait_for_rollout()

    def wait_for_rollout(self) -> None:
        """Wait until all controllers are ready."""
        rollout = ("rollout", "status", "deploy/workron-controller", "-n", RELEASE_NAMESPACE)
        self.cluster.kubectl(*rollout, "--timeout=120s")

    def workron(self, *words: object) -> str:
        """Run `workron` in the pod of a controller, as the docs say."""
        execute = ("exec", "-n", RELEASE_NAMESPACE, "deploy/workron-controller", "--", "workron")
        return self.cluster.kubectl(*execute, *words)

    def sql(self, query: str) -> str:
        """Run a query in the trial database; one line for each row, values separated by `|`."""
        execute = ("exec", "-n", RELEASE_NAMESPACE, "workron-database-0", "--")
        return self.cluster.kubectl(*execute, *_SQL, query).strip()
