"""The examples for kustomize and Argo CD work as the docs say."""

import importlib
import os
import pathlib
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from workron.core.states import Reason, State
from workron.scheduling import job_view

_FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "gitops"
_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_KINDS = ("Job", "Workflow", "WorkerPool")
_LUA = importlib.import_module("lupa.lua51")
"""The version of Lua that Argo CD uses."""

Object = dict[str, Any]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the example; skips without kubectl."""
    if shutil.which("kubectl") is None:
        problem = "kubectl is not on the PATH"
        if os.environ.get("WORKRON_TEST_HELM") == "required":
            pytest.fail(problem)
        pytest.skip(f"{problem}; WORKRON_TEST_HELM=required makes this a failure")
    return pathlib.Path(shutil.copytree(_FOLDER, tmp_path / "gitops"))


def _built(folder: pathlib.Path) -> dict[str, Object]:
    build = ["kubectl", "kustomize", str(folder)]
    said = subprocess.run(build, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    objects = yaml.safe_load_all(said.stdout)
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in objects}


def test_name_prefix_changes_all_references(folder: pathlib.Path) -> None:
    built = _built(folder)
    [settings] = [name for name in built if name.startswith("ConfigMap/")]
    report, pool = built["Job/nightly-report"], built["WorkerPool/nightly-reports"]
    assert report["spec"]["dependsOn"] == [{"name": "nightly-collect"}]
    assert report["spec"]["pool"] == "nightly-reports"
    assert pool["spec"]["envFrom"] == [{"configMapRef": {"name": settings.split("/")[1]}}]
    assert pool["spec"]["image"] == "python:3.13-slim-trixie"


def test_references_keep_their_names_without_the_configuration(folder: pathlib.Path) -> None:
    path = folder / "kustomization.yaml"
    path.write_text(path.read_text().partition("configurations:")[0])
    assert _built(folder)["Job/nightly-report"]["spec"]["dependsOn"] == [{"name": "collect"}]


def test_every_path_in_the_configuration_exists_in_the_definitions() -> None:
    config = yaml.safe_load((_FOLDER / "name-references.yaml").read_text())
    places = [place for one in config["nameReference"] for place in one["fieldSpecs"]]
    for place in [*places, *config["images"]]:
        schema = _spec_of(place["kind"])
        for name in place["path"].split("/")[1:]:
            schema = schema["properties"][name]
            schema = schema.get("items", schema)
        assert schema["type"] == "string"


def _spec_of(kind: str) -> Any:
    for path in (_FOLDER.parents[1] / "crds").glob("*.yaml"):
        definition = yaml.safe_load(path.read_text())["spec"]
        if definition["names"]["kind"] == kind:
            schema = definition["versions"][0]["schema"]["openAPIV3Schema"]
            return schema["properties"]["spec"]
    raise AssertionError(f"no definition of {kind}")


def test_jobs_of_the_example_are_valid() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "workron", "validate", _FOLDER / "jobs.yaml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr


def _health(kind: str, types: str, reason: str, message: str = "") -> tuple[str, str]:
    """Return the health that Argo CD computes from the conditions that are true."""
    data = yaml.safe_load((_FOLDER / "argocd-cm.yaml").read_text())["data"]
    script = data[f"resource.customizations.health.workron.dev_{kind}"]
    lua = _LUA.LuaRuntime()
    health = lua.execute(f"return function(obj) {script} end")
    items = [{"type": "Accepted", "status": "False", "reason": "Other", "message": "other"}]
    items += [
        {"type": name, "status": "True", "reason": reason, "message": message}
        for name in types.split()
    ]
    found = health(lua.table_from({"status": {"conditions": items}}, recursive=True))
    return found.status, found.message


@pytest.mark.parametrize(
    ("types", "reason", "health"),
    [
        ("Reconciling", "Queued", "Progressing"),
        ("Complete", "Succeeded", "Healthy"),
        ("Failed Stalled", "ExitCode", "Degraded"),
        ("Complete", "NotNeeded", "Healthy"),
        ("Stalled", "CycleDetected", "Degraded"),
        ("Suspended Reconciling", "Suspended", "Suspended"),
        ("Ready", "Ready", "Healthy"),
        ("Ready Stalled", "PodsNotReady", "Degraded"),
    ],
)
@pytest.mark.parametrize("kind", _KINDS)
def test_argo_cd_computes_health_from_conditions(
    kind: str, types: str, reason: str, health: str
) -> None:
    assert _health(kind, types, reason) == (health, reason)


@pytest.mark.parametrize(
    ("state", "reason", "health"),
    [
        (State.RUNNING, None, "Progressing"),
        (State.WAITING, Reason.SUSPENDED, "Suspended"),
        (State.SUCCEEDED, None, "Healthy"),
        (State.SKIPPED, Reason.NOT_NEEDED, "Healthy"),
        (State.SKIPPED, Reason.UPSTREAM_FAILED, "Degraded"),
        (State.SKIPPED, Reason.UPSTREAM_CANCELLED, "Degraded"),
        (State.CANCELLED, None, "Degraded"),
        (State.FAILED, Reason.EXIT_CODE, "Degraded"),
    ],
)
def test_argo_cd_computes_health_from_each_state(
    state: State, reason: Reason | None, health: str
) -> None:
    phase = job_view.Phase(state, reason)
    holding = " ".join(one.type for one in job_view.conditions_of(phase, _NOON))
    assert _health("Job", holding, reason or state) == (health, reason or state)


def test_argo_cd_shows_reason_and_message() -> None:
    assert _health("Job", "Stalled", "ExitCode", "7") == ("Degraded", "ExitCode: 7")


@pytest.mark.parametrize("status", [{}, {"status": {}}])
def test_argo_cd_reports_progressing_without_a_status(status: Object) -> None:
    data = yaml.safe_load((_FOLDER / "argocd-cm.yaml").read_text())["data"]
    lua = _LUA.LuaRuntime()
    health = lua.execute(f"return function(obj) {next(iter(data.values()))} end")
    assert health(lua.table_from(status, recursive=True)).status == "Progressing"
