"""The chart on a real cluster: installed, used, changed, taken away and found again, as docs say.

The namespaces enforce the restricted Pod Security Standard, so that a pod that asks for more than
it may have does not come up at all.
"""

import contextlib
import json
import pathlib
import secrets
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from e2e import cluster as clusters
from e2e import containers
from e2e.cluster import Cluster

# Images are built, a cluster is made, and each release takes minutes to be ready.
pytestmark = pytest.mark.timeout(1800)

_ROOT = pathlib.Path(__file__).parents[1]
_CHART = _ROOT / "helm" / "workron"
_HOME = "workron"
_DATABASE_IMAGE = "postgres:17-trixie"
_PATIENCE = ("--wait", "--timeout", "10m")
_LONG = {
    "apiVersion": "workron.dev/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "long"},
    "spec": {"command": "until test -e /tmp/go; do sleep 0.2; done"},
}


class Release:
    """One release, as a person handles it with a version of Helm."""

    def __init__(self, cluster: Cluster, helm: str, tag: str) -> None:
        self.cluster = cluster
        self._helm = helm
        self._values = (
            *("--set", f"image.tag={tag}"),
            *("--set", f"workerImage.tag={tag}"),
        )

    def helm(self, *words: object) -> str:
        """Run it."""
        done = subprocess.run(
            [self._helm, *map(str, words), "--namespace", _HOME],
            env=self.cluster.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self) -> None:
        """Install it, and wait until it is there."""
        self.helm("install", "workron", _CHART, *self._values, *_PATIENCE)

    def workron(self, *words: object) -> str:
        """Ask the controller as the docs say."""
        inside = ("exec", "-n", _HOME, "deploy/workron-controller", "--", "workron")
        return self.cluster.kubectl(*inside, *words)

    def password(self) -> str:
        """Give what the database's password is."""
        path = "jsonpath={.data.password}"
        return self.cluster.kubectl("get", "secret", "workron-database", "-n", _HOME, "-o", path)

    def is_there(self, *words: object) -> bool:
        """Tell whether an object is there."""
        return self.cluster.asked("get", *words).returncode == 0

    def take_away(self) -> None:
        """Uninstall it as the docs say, workers first."""
        self.cluster.kubectl("delete", "wpool", "--all", "--all-namespaces")
        self.helm("uninstall", "workron", *_PATIENCE)


@pytest.fixture(scope="module")
def tag() -> Iterator[str]:
    """The tag of both images, built from this tree by the doors that everybody uses."""
    containers.need_docker()
    tag = f"e2e-{secrets.token_hex(4)}"
    worker, controller = f"workron-worker:{tag}", f"workron-controller:{tag}"
    make = ["make", "--silent", f"IMAGE={worker}", f"CONTROLLER_IMAGE={controller}"]
    try:
        subprocess.run([*make, "image", "controller-image"], cwd=_ROOT, check=True)
        yield tag
    finally:
        containers.docker("image", "rm", "--force", worker, controller)


@pytest.fixture(scope="module")
def cluster(tag: str) -> Iterator[Cluster]:
    """A cluster with the images, and with namespaces that let nothing unrestricted in."""
    with clusters.running() as one:
        images = [f"workron-worker:{tag}", f"workron-controller:{tag}"]
        if containers.docker("image", "inspect", _DATABASE_IMAGE, is_checked=False).returncode == 0:
            images.append(_DATABASE_IMAGE)
        name = one.kubectl("config", "current-context").strip().removeprefix("kind-")
        subprocess.run(["kind", "load", "docker-image", *images, "--name", name], check=True)
        one.kubectl("create", "namespace", _HOME)
        enforce = "pod-security.kubernetes.io/enforce=restricted"
        one.kubectl("label", "namespace", _HOME, "default", enforce)
        yield one


@pytest.fixture(params=["helm", "helm3"])
def release(request: pytest.FixtureRequest, cluster: Cluster, tag: str) -> Iterator[Release]:
    """A release that is installed, and of which nothing is left."""
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param} on the PATH")
    one = Release(cluster, request.param, tag)
    one.install()
    yield one
    with contextlib.suppress(AssertionError):
        one.take_away()
    cluster.asked("delete", "pvc/data-workron-database-0", "secret/workron-database", "-n", _HOME)
    kinds = (f"{name}.workron.dev" for name in ("workronjobs", "workronflows", "workerpools"))
    cluster.asked("delete", "crd", *kinds)


def test_release_runs_jobs_is_changed_taken_away_and_found_again(release: Release) -> None:
    cluster = release.cluster
    release.helm("test", "workron")
    cluster.kubectl("apply", "-f", _ROOT / "examples" / "job.yaml")
    cluster.kubectl("wait", "--for=condition=Complete", "wj/hello", "--timeout=120s")
    assert release.workron("output", "-n", "default", "hello").startswith("Hello from Linux")

    cluster.apply(_LONG)
    cluster.until("long", "Running")
    password = release.password()
    changed = ("--reset-then-reuse-values", "--set", "controller.statusRate=50")
    release.helm("upgrade", "workron", _CHART, *changed, *_PATIENCE)
    release.helm("rollback", "workron", *_PATIENCE)
    assert release.password() == password
    _let_go(cluster)
    assert cluster.until("long", "Succeeded")["attempts"] == 1

    release.take_away()
    assert cluster.phases() == {"hello": "Succeeded", "long": "Succeeded"}
    assert release.is_there("pvc", "data-workron-database-0", "-n", _HOME)
    assert release.password() == password

    release.install()
    told = json.loads(release.workron("get", "-n", "default", "-o", "json"))["items"]
    assert {one["metadata"]["name"] for one in told} == {"hello", "long"}
    assert cluster.status("wj", "hello")["attempts"] == 1


def test_job_waits_where_no_workers_may_be_and_says_the_command(release: Release) -> None:
    cluster = release.cluster
    cluster.kubectl("create", "namespace", "elsewhere")
    try:
        place = ("-n", "elsewhere")
        cluster.kubectl("apply", "-f", _ROOT / "examples" / "job.yaml", *place)
        reason = "jsonpath={.status.reason}=NamespaceNotEnabled"
        cluster.kubectl("wait", f"--for={reason}", "wj/hello", *place, "--timeout=120s")
        path = "jsonpath={.status.message}"
        message = cluster.kubectl("get", "wj", "hello", *place, "-o", path)
        command = message[message.index("kubectl ") :].split()[1:]
        cluster.kubectl(*command)
        cluster.kubectl("wait", "--for=condition=Complete", "wj/hello", *place, "--timeout=120s")
    finally:
        cluster.kubectl("delete", "namespace", "elsewhere")


def _let_go(cluster: Cluster) -> None:
    """Let the long command end: its worker's commands share that folder."""
    [pod] = json.loads(
        cluster.kubectl("get", "pods", "-l", "workron.dev/pool=default", "-o", "json")
    )["items"]
    name = pod["metadata"]["name"]
    cluster.kubectl("exec", name, "-c", "runner", "--", "python3", "-c", "open('/tmp/go', 'w')")
