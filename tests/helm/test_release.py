"""The release record of Helm, the notes, and the metadata in Chart.yaml."""

import base64
import gzip
import json
import pathlib
import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.helm import chart

_MAX_BYTES = 300_000
"""A Secret holds 1 MiB, and the definitions will grow."""

_CHART: dict[str, Any] = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
_NOTES = {
    "trial": [
        "deployment/workron-controller: 2 replicas",
        "FOR A TRIAL ONLY",
        "workron, default",
        "PVC",
        "definitions of Job",
    ],
    "own-database": [
        "the one in Secret workron-db-app",
        "team-a, team-b",
        "everything in your database",
    ],
    "one-namespace": ["kubectl apply -n team-a", "everything in your database"],
    "all-namespaces": ["in EVERY namespace", "FOR A TRIAL ONLY"],
    "everything": ["team-a, team-b", "PVC"],
}


def _record(case: pathlib.Path) -> dict[str, Any]:
    """Return the record that Helm would store of a release with these values."""
    words = ("install", "workron", chart.CHART, "--namespace", "workron", "--values", case)
    done = chart.run_helm("helm", *words, "--dry-run=client", "--output=json")
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def test_release_record_fits_easily_into_a_secret(
    case: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = gzip.compress(json.dumps(_record(case)).encode())
    # Helm encodes it once, and the Secret encodes it again.
    size = len(base64.b64encode(base64.b64encode(record)))
    with capsys.disabled():
        print(f"\na release of {case.stem}: {size / 1000:.0f} kB")  # noqa: T201 - a figure to be seen
    assert size < _MAX_BYTES


def test_versions_match_the_project() -> None:
    project = tomllib.loads((chart.ROOT / "pyproject.toml").read_text())["project"]
    assert _CHART["version"] == _CHART["appVersion"] == project["version"]


def test_images_in_the_annotations_match_the_values() -> None:
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text())
    images = [values["image"], values["workerImage"], values["database"]["trial"]["image"]]
    version = _CHART["appVersion"]
    listed = yaml.safe_load(_CHART["annotations"]["artifacthub.io/images"])
    assert [one["image"] for one in listed] == [
        f"{one['repository']}:{one['tag'] or version}" for one in images
    ]


def test_kinds_in_the_annotations_match_the_definitions() -> None:
    listed = yaml.safe_load(_CHART["annotations"]["artifacthub.io/crds"])
    made = {
        one["metadata"]["name"]: one["spec"]["names"]["kind"]
        for one in chart.of_kind(chart.render(), "CustomResourceDefinition")
    }
    assert {one["name"]: one["kind"] for one in listed} == made


def test_older_kubernetes_is_rejected(helm: str) -> None:
    done = chart.run_helm(helm, "template", "workron", chart.CHART, "--kube-version", "1.32.9")
    assert done.returncode != 0
    assert ">=1.33.0" in done.stderr


def test_no_default_image_names_a_registry() -> None:
    for container in (
        one for pod in chart.pods(chart.render()).values() for one in chart.containers(pod)
    ):
        assert re.fullmatch(r"[a-z-]+:[\w.-]+", container["image"])


def test_notes_describe_the_release_and_what_uninstalling_leaves(case: pathlib.Path) -> None:
    notes = " ".join(_record(case)["info"]["notes"].split())
    assert [words for words in _NOTES[case.stem] if words not in notes] == []


def test_notes_warn_only_when_the_database_is_for_a_trial() -> None:
    for case in chart.CASES:
        is_trial = chart.of_kind(chart.render(values=case), "StatefulSet") != []
        assert ("TRIAL" in _record(case)["info"]["notes"]) is is_trial


def test_definitions_are_kept_on_uninstall_unless_disabled() -> None:
    for given, expected in (("true", {"helm.sh/resource-policy": "keep"}), ("false", None)):
        for one in chart.of_kind(chart.render(f"crds.keep={given}"), "CustomResourceDefinition"):
            assert one["metadata"].get("annotations") == expected


def test_definitions_are_not_rendered_when_disabled() -> None:
    assert chart.of_kind(chart.render("crds.enabled=false"), "CustomResourceDefinition") == []
