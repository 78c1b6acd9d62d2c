"""A cluster with our images and the release on it, for as long as tests need it.

The database and the controllers are on the control plane and workers are on the other nodes, so
that a node of workers can be taken away without them. Called by `__main__`, which shares one among
all tests, and by the fixtures, for who runs a file by itself.
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

import pytest

from e2e import containers
from e2e.cluster import Cluster
from e2e.release import HOME, Release

if TYPE_CHECKING:
    from collections.abc import Iterator


NODE: Final = os.environ.get("WORKRON_E2E_NODE", "")
"""The image of the cluster's nodes; empty: kind's own."""
_REQUIRED: Final = os.environ.get("WORKRON_E2E_CLUSTER") == "required"
_ROOT: Final = pathlib.Path(__file__).parents[1]
_PROMISES: Final = pathlib.Path(__file__).parent / "promises"
_TOOLS: Final = ("docker", "kind", "kubectl", "helm")
_NODES: Final = "control-plane", "worker", "worker"
_IMAGES: Final = "workron-worker", "workron-controller"
_DATABASE: Final = "postgres:17-trixie"
_ENFORCE: Final = "pod-security.kubernetes.io/enforce=restricted"
_LEADS: Final = "node-role.kubernetes.io/control-plane"
_WORKS: Final = "workron-e2e"
_SHARED: Final = "WORKRON_E2E_KUBECONFIG", "WORKRON_E2E_TAG"


def place_of(file: pathlib.Path) -> str:
    """Name the namespace that belongs to a test file."""
    return file.stem.removeprefix("test_").replace("_", "-")


def places() -> list[str]:
    """Name those of all files."""
    return sorted(map(place_of, _PROMISES.glob("test_*.py")))


def need_tools() -> None:
    """Skip where a cluster cannot be made, or fail if one was promised."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing and _REQUIRED:
        pytest.fail(f"a cluster is required, and {', '.join(missing)} are not on the PATH")
    if missing:
        pytest.skip(f"no cluster: {', '.join(missing)} not on the PATH")


@contextlib.contextmanager
def shared() -> Iterator[Release]:
    """Give the release that somebody else has made, or make one for as long as it is needed."""
    config, tag = (os.environ.get(name) for name in _SHARED)
    if config and tag:
        yield _release(Cluster(pathlib.Path(config)), tag)
        return
    need_tools()
    with contextlib.ExitStack() as kept:
        config_path = kept.enter_context(clustered())
        yield kept.enter_context(released(config_path))


def handed_on(release: Release) -> dict[str, str]:
    """Give the environment in which `shared` finds this one."""
    return dict(zip(_SHARED, (str(release.cluster.config), release.tag), strict=True))


@contextlib.contextmanager
def clustered(*, keep: bool = False) -> Iterator[pathlib.Path]:
    """Make a cluster, give its kubeconfig, and remove both, unless they are to be kept."""
    name = f"workron-{secrets.token_hex(4)}"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="workron-e2e-"))
    config = folder / "config"
    about = ["--name", name, "--kubeconfig", str(config)]
    try:
        _create(folder, about)
        yield config
    finally:
        if not keep:
            subprocess.run(["kind", "delete", "cluster", *about], capture_output=True, check=False)
            shutil.rmtree(folder)


def _create(folder: pathlib.Path, about: list[str]) -> None:
    plan = folder / "kind.yaml"
    nodes = "".join(f"- role: {role}\n" for role in _NODES)
    plan.write_text(f"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes:\n{nodes}")
    image = ["--image", NODE] if NODE else []
    create = ["kind", "create", "cluster", "--wait", "180s", "--config", str(plan), *image, *about]
    made = subprocess.run(create, capture_output=True, text=True, check=False)
    if made.returncode and not _REQUIRED:
        pytest.skip(f"no cluster: {made.stderr.strip()[-500:]}")
    assert made.returncode == 0, made.stderr


@contextlib.contextmanager
def released(config: pathlib.Path, *, keep: bool = False) -> Iterator[Release]:
    """Build the images, bring them to a cluster of kind's, and install the chart there."""
    containers.need_docker()
    tag = f"e2e-{secrets.token_hex(4)}"
    release = _release(Cluster(config), tag)
    try:
        _build(tag)
        _load(release.cluster, tag)
        _arrange(release.cluster)
        release.install()
        release.cluster.kubectl("uncordon", "-l", f"{_WORKS}=jobs")
        yield release
    finally:
        if not keep:
            containers.docker("image", "rm", "--force", *_named(tag), is_checked=False)


def _release(cluster: Cluster, tag: str) -> Release:
    lists = ",".join([HOME, "default", *places()])
    leads = _LEADS.replace(".", r"\.")
    values = (
        *("--set", f"poolNamespaces={{{lists}}}"),
        *("--set-string", f"controller.nodeSelector.{leads}="),
        *("--set-string", f"defaultPool.nodeSelector.{_WORKS}=jobs"),
        # Two cores may be all that there is, and a start of ten pods takes them from everybody.
        *("--set", "defaultPool.maxReplicas=2"),
    )
    return Release(cluster, tag, values)


def _named(tag: str) -> list[str]:
    return [f"{image}:{tag}" for image in _IMAGES]


def _build(tag: str) -> None:
    worker, controller = _named(tag)
    make = ["make", "--silent", f"IMAGE={worker}", f"CONTROLLER_IMAGE={controller}"]
    subprocess.run([*make, "image", "controller-image"], cwd=_ROOT, check=True)


def _load(cluster: Cluster, tag: str) -> None:
    images = _named(tag)
    if containers.docker("image", "inspect", _DATABASE, is_checked=False).returncode == 0:
        images.append(_DATABASE)
    load = ["kind", "load", "docker-image", *images, "--name", cluster.name]
    subprocess.run(load, check=True, capture_output=True)


def _arrange(cluster: Cluster) -> None:
    """Have the control plane take pods, and have what is installed now go nowhere else."""
    cluster.asked("taint", "nodes", "-l", _LEADS, f"{_LEADS}-")
    cluster.kubectl("label", "--overwrite", "nodes", "-l", f"!{_LEADS}", f"{_WORKS}=jobs")
    cluster.kubectl("cordon", "-l", f"{_WORKS}=jobs")
    for name in (HOME, *places()):
        cluster.asked("create", "namespace", name)
    cluster.kubectl("label", "--overwrite", "namespace", HOME, "default", *places(), _ENFORCE)
