"""Renders the chart with Helm, once per session for all test processes."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
CHART = ROOT / "helm" / "workron"
CASES = sorted((CHART / "ci").glob("*.yaml"))
HELMS = ("helm", "helm3")
OLDEST = "1.33.0"
"""The oldest Kubernetes that Chart.yaml accepts; Helm assumes its own version if none is given."""

Object = dict[str, Any]

_shared_folder: pathlib.Path | None = None


def share_renderings(folder: pathlib.Path) -> None:
    """Keep renderings in a folder that all test processes of a session share."""
    global _shared_folder  # noqa: PLW0603 - set once, by the session fixture
    folder.mkdir(exist_ok=True)
    _shared_folder = folder


def require(program: str) -> None:
    """Skip if a program is not installed; fail instead if WORKRON_TEST_HELM=required is set."""
    if shutil.which(program) is not None:
        return
    problem = f"{program} is not on the PATH"
    if os.environ.get("WORKRON_TEST_HELM") == "required":
        pytest.fail(problem)
    pytest.skip(f"{problem}; WORKRON_TEST_HELM=required makes this a failure")


def run_helm(helm: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a version of Helm."""
    require(helm)
    return subprocess.run(
        [helm, *map(str, words)], capture_output=True, text=True, check=False, timeout=50
    )


def render(*settings: str, values: pathlib.Path | None = None, helm: str = "helm") -> list[Object]:
    """Return the objects of a release with a values file and `key=value` settings on top."""
    return _rendered(helm, values, settings)


def render_error(*settings: str, helm: str = "helm") -> str:
    """Return the error message of Helm for values that it rejects."""
    done = _template(helm, settings)
    assert done.returncode != 0
    return done.stderr


@functools.cache
def _rendered(helm: str, values: pathlib.Path | None, settings: tuple[str, ...]) -> list[Object]:
    if _shared_folder is None:
        return _render(helm, values, settings)
    key = hashlib.sha256(repr((helm, values, settings)).encode()).hexdigest()
    path = _shared_folder / f"{key}.json"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            path.write_text(json.dumps(_render(helm, values, settings)))
    objects: list[Object] = json.loads(path.read_text())
    return objects


def _render(helm: str, values: pathlib.Path | None, settings: tuple[str, ...]) -> list[Object]:
    done = _template(helm, settings, *(() if values is None else ("--values", values)))
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.load_all(done.stdout, yaml.CSafeLoader) if one]


def _template(
    helm: str, settings: tuple[str, ...], *more: object
) -> subprocess.CompletedProcess[str]:
    named = ("workron", CHART, "--namespace", "workron", "--kube-version", OLDEST)
    return run_helm(helm, "template", *named, *more, *(f"--set={one}" for one in settings))


def find(objects: list[Object], kind: str, name: str) -> Object:
    """Return the one object of a kind and name."""
    [found] = [one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    """Return all objects of a kind."""
    return [one for one in objects if one["kind"] == kind]


def pods(objects: list[Object]) -> dict[str, Object]:
    """Return the pod specs of Pods and workloads by `kind/name`."""
    found = {}
    for one in objects:
        if one["kind"] == "Pod":
            found[f"Pod/{one['metadata']['name']}"] = one["spec"]
        elif "template" in (one.get("spec") or {}):
            found[f"{one['kind']}/{one['metadata']['name']}"] = one["spec"]["template"]["spec"]
    return found


def containers(pod: Object) -> list[Object]:
    """Return the containers of a pod, init containers first."""
    return [*pod.get("initContainers", []), *pod["containers"]]
