"""The chart, as a person installs, changes and removes it with a version of Helm."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.cluster import Cluster


HOME: Final = "workron"
"""The namespace of the release."""
_ROOT: Final = pathlib.Path(__file__).parents[1]
_CHART: Final = _ROOT / "helm" / "workron"
_PATIENCE: Final = ("--wait", "--timeout", "10m")
_SQL: Final = ("psql", "--username=workron", "--dbname=workron", "--no-psqlrc", "-At", "-c")


@dataclass(frozen=True)
class Release:
    """One release, with images of this tree."""

    cluster: Cluster
    tag: str
    values: tuple[str, ...] = ()
    program: str = "helm"

    def helm(self, *words: object) -> str:
        """Run Helm."""
        done = subprocess.run(
            [self.program, *map(str, words), "--namespace", HOME],
            env=self.cluster.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self) -> None:
        """Install it, and wait until it is there."""
        tags = ("--set", f"image.tag={self.tag},workerImage.tag={self.tag}")
        self.helm("install", "workron", _CHART, *tags, *self.values, *_PATIENCE)

    def upgrade(self, *changed: str) -> None:
        """Change some values, and wait until that is carried out."""
        self.helm("upgrade", "workron", _CHART, "--reset-then-reuse-values", *changed, *_PATIENCE)

    def roll_back(self) -> None:
        """Undo the last change, and wait until that is carried out."""
        self.helm("rollback", "workron", *_PATIENCE)

    def take_away(self) -> None:
        """Uninstall it as the docs say, workers first."""
        self.cluster.kubectl("delete", "wpool", "--all", "--all-namespaces")
        self.helm("uninstall", "workron", *_PATIENCE)

    @contextlib.contextmanager
    def without_controllers(self) -> Iterator[None]:
        """Have none, and then as many as before."""
        scale = ("scale", "deploy/workron-controller", "-n", HOME)
        self.cluster.kubectl(*scale, "--replicas=0")
        label = ("-l", "app.kubernetes.io/name=workron-controller", "-n", HOME)
        try:
            self.cluster.kubectl("wait", "--for=delete", "pods", *label, "--timeout=120s")
            yield
        finally:
            self.cluster.kubectl(*scale, "--replicas=2")
            self.settle()

    def settle(self) -> None:
        """Wait until all controllers that there are to be are there."""
        what = ("rollout", "status", "deploy/workron-controller", "-n", HOME)
        self.cluster.kubectl(*what, "--timeout=120s")

    def workron(self, *words: object) -> str:
        """Ask the controller as the docs say."""
        inside = ("exec", "-n", HOME, "deploy/workron-controller", "--", "workron")
        return self.cluster.kubectl(*inside, *words)

    def sql(self, question: str) -> str:
        """Ask the trial's database; a line for each row, its values apart by |."""
        inside = ("exec", "-n", HOME, "workron-database-0", "--")
        return self.cluster.kubectl(*inside, *_SQL, question).strip()
