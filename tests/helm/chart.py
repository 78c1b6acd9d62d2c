"""The chart as Helm renders it, for the tests here."""

from __future__ import annotations

import functools
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
"""The Kubernetes that Chart.yaml asks for. Helm takes one of its own where none is named."""

Object = dict[str, Any]


def need(program: str) -> None:
    """Skip where it is not installed; fail where WORKRON_TEST_HELM says that it has to be."""
    if shutil.which(program) is not None:
        return
    why = f"no {program} on the PATH"
    if os.environ.get("WORKRON_TEST_HELM") == "required":
        pytest.fail(why)
    pytest.skip(f"{why}; WORKRON_TEST_HELM=required makes that a failure")


def call(helm: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run it."""
    need(helm)
    return subprocess.run(
        [helm, *map(str, words)], capture_output=True, text=True, check=False, timeout=50
    )


def render(*settings: str, values: pathlib.Path | None = None, helm: str = "helm") -> list[Object]:
    """Give the objects of a release with these values: a file, and `key=value` over it."""
    return _rendered(helm, values, settings)


def refusal(*settings: str, helm: str = "helm") -> str:
    """Give what Helm says about values that it does not take."""
    said = _template(helm, settings)
    assert said.returncode != 0
    return said.stderr


@functools.cache
def _rendered(helm: str, values: pathlib.Path | None, settings: tuple[str, ...]) -> list[Object]:
    said = _template(helm, settings, *(() if values is None else ("--values", values)))
    assert said.returncode == 0, said.stderr
    return [one for one in yaml.load_all(said.stdout, yaml.CSafeLoader) if one]


def _template(
    helm: str, settings: tuple[str, ...], *more: object
) -> subprocess.CompletedProcess[str]:
    named = ("workron", CHART, "--namespace", "workron", "--kube-version", OLDEST)
    return call(helm, "template", *named, *more, *(f"--set={one}" for one in settings))


def find(objects: list[Object], kind: str, name: str) -> Object:
    """Give the one object of that kind and name."""
    [found] = [one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    """Give all objects of a kind."""
    return [one for one in objects if one["kind"] == kind]


def pods(objects: list[Object]) -> dict[str, Object]:
    """Give the spec of each pod that comes of them, by what it comes of."""
    found = {}
    for one in objects:
        if one["kind"] == "Pod":
            found[f"Pod/{one['metadata']['name']}"] = one["spec"]
        elif "template" in (one.get("spec") or {}):
            found[f"{one['kind']}/{one['metadata']['name']}"] = one["spec"]["template"]["spec"]
    return found


def containers(pod: Object) -> list[Object]:
    """Give all containers of a pod."""
    return [*pod.get("initContainers", []), *pod["containers"]]
