"""Makes a kind cluster, loads the images of this tree into it, and installs the chart.

The database and the controllers run on the control plane and workers on the other nodes, so that a
test can take a node of workers away. `python -m e2e` shares one cluster among all tests; a single
file run with pytest makes its own.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, Final

from e2e import containers
from e2e.cluster import Cluster
from e2e.release import RELEASE_NAMESPACE, Release

if TYPE_CHECKING:
    from collections.abc import Iterator


NODE_IMAGE: Final = os.environ.get("WORKRON_E2E_NODE", "")
"""The image of the cluster's nodes; empty: kind's default."""
OPTIONAL_HINT: Final = "set WORKRON_E2E_CLUSTER=optional to leave the cluster tests out"
_ROOT: Final = pathlib.Path(__file__).parents[1]
_PROMISES: Final = pathlib.Path(__file__).parent / "promises"
_TOOLS: Final = ("docker", "kind", "kubectl", "helm", "helm3")
_NODES: Final = "control-plane", "worker", "worker"
_IMAGES: Final = "workron-worker", "workron-controller"
_DATABASE_IMAGE: Final = "postgres:17-trixie"
_ENFORCE_RESTRICTED: Final = "pod-security.kubernetes.io/enforce=restricted"
_CONTROL_PLANE_LABEL: Final = "node-role.kubernetes.io/control-plane"
_WORKERS_LABEL: Final = "workron-e2e"
_SHARED: Final = "WORKRON_E2E_KUBECONFIG", "WORKRON_E2E_TAG"


class NoClusterError(Exception):
    """No cluster can be made on this machine; the message says why."""


def is_cluster_optional() -> bool:
    """Return whether tests that need a cluster may be left out."""
    return os.environ.get("WORKRON_E2E_CLUSTER") == "optional"


def namespace_of(file: pathlib.Path) -> str:
    """Return the name of the namespace that belongs to a test file."""
    return file.stem.removeprefix("test_").replace("_", "-")


def namespaces() -> list[str]:
    """Return the names of the namespaces of all test files."""
    return sorted(map(namespace_of, _PROMISES.glob("test_*.py")))


def require_tools() -> None:
    """Raise if a program is missing that a cluster needs."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise NoClusterError(f"not on the PATH: {', '.join(missing)}")


@contextlib.contextmanager
def shared_release() -> Iterator[Release]:
    """Use the release that `python -m e2e` has installed, or install one for this session."""
    config, tag = (os.environ.get(name) for name in _SHARED)
    if config and tag:
        yield _release(Cluster(pathlib.Path(config)), tag)
        return
    require_tools()
    with contextlib.ExitStack() as stack:
        config_path = stack.enter_context(kind_cluster())
        yield stack.enter_context(installed_release(config_path))


def environment_of(release: Release) -> dict[str, str]:
    """Return the environment in which `shared_release` finds this release."""
    return dict(zip(_SHARED, (str(release.cluster.config), release.tag), strict=True))


@contextlib.contextmanager
def kind_cluster(*, keep: bool = False) -> Iterator[pathlib.Path]:
    """Make a cluster and yield its kubeconfig; delete both afterwards, unless `keep`."""
    name = f"workron-{secrets.token_hex(4)}"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="workron-e2e-"))
    config = folder / "config"
    options = ["--name", name, "--kubeconfig", str(config)]
    try:
        _create_cluster(folder, options)
        yield config
    finally:
        if not keep:
            delete = ["kind", "delete", "cluster", *options]
            subprocess.run(delete, capture_output=True, check=False)
            shutil.rmtree(folder)


def _create_cluster(folder: pathlib.Path, options: list[str]) -> None:
    config = folder / "kind.yaml"
    nodes = "".join(f"- role: {role}\n" for role in _NODES)
    config.write_text(f"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes:\n{nodes}")
    image = ["--image", NODE_IMAGE] if NODE_IMAGE else []
    create = ["kind", "create", "cluster", "--wait", "180s", "--config", str(config)]
    done = subprocess.run([*create, *image, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoClusterError(f"kind create cluster failed: {done.stderr.strip()[-500:]}")


@contextlib.contextmanager
def installed_release(config: pathlib.Path, *, keep: bool = False) -> Iterator[Release]:
    """Build the images, load them into a kind cluster, and install the chart."""
    tag = f"e2e-{secrets.token_hex(4)}"
    release = _release(Cluster(config), tag)
    try:
        _build_images(tag)
        _load_images(release.cluster, tag)
        _prepare_nodes_and_namespaces(release.cluster)
        release.install()
        release.cluster.kubectl("uncordon", "-l", f"{_WORKERS_LABEL}=jobs")
        yield release
    finally:
        if not keep:
            containers.docker("image", "rm", "--force", *_image_names(tag), check=False)


def _release(cluster: Cluster, tag: str) -> Release:
    names = ",".join([RELEASE_NAMESPACE, "default", *namespaces()])
    control_plane = _CONTROL_PLANE_LABEL.replace(".", r"\.")
    values = (
        *("--set", f"workerNamespaces={{{names}}}"),
        *("--set-string", f"controller.nodeSelector.{control_plane}="),
        *("--set-string", f"defaultWorkerPool.nodeSelector.{_WORKERS_LABEL}=jobs"),
        # The machine may have two cores, and ten pods that start at once would take them all.
        *("--set", "defaultWorkerPool.maxReplicas=2"),
    )
    return Release(cluster, tag, values)


def _image_names(tag: str) -> list[str]:
    return [f"{image}:{tag}" for image in _IMAGES]


def _build_images(tag: str) -> None:
    worker, controller = _image_names(tag)
    make = ["make", "--silent", f"IMAGE={worker}", f"CONTROLLER_IMAGE={controller}"]
    subprocess.run([*make, "image", "controller-image"], cwd=_ROOT, check=True)


def _load_images(cluster: Cluster, tag: str) -> None:
    images = _image_names(tag)
    if containers.docker("image", "inspect", _DATABASE_IMAGE, check=False).returncode == 0:
        images.append(_DATABASE_IMAGE)
    load = ["kind", "load", "docker-image", *images, "--name", cluster.name]
    subprocess.run(load, check=True, capture_output=True)


def _prepare_nodes_and_namespaces(cluster: Cluster) -> None:
    """Let the control plane take pods; cordon the other nodes until the release is installed."""
    cluster.try_kubectl("taint", "nodes", "-l", _CONTROL_PLANE_LABEL, f"{_CONTROL_PLANE_LABEL}-")
    others = ("-l", f"!{_CONTROL_PLANE_LABEL}")
    cluster.kubectl("label", "--overwrite", "nodes", *others, f"{_WORKERS_LABEL}=jobs")
    cluster.kubectl("cordon", "-l", f"{_WORKERS_LABEL}=jobs")
    for name in (RELEASE_NAMESPACE, *namespaces()):
        cluster.try_kubectl("create", "namespace", name)
    every = (RELEASE_NAMESPACE, "default", *namespaces())
    cluster.kubectl("label", "--overwrite", "namespace", *every, _ENFORCE_RESTRICTED)
