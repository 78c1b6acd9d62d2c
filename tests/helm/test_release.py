"""What Helm keeps of a release, and what Chart.yaml says of it."""

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

_MOST_BYTES = 300_000
"""A Secret holds 1 MiB, and each of our definitions will grow."""

_CHART: dict[str, Any] = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
_NOTES = {
    "trial": [
        "deployment/workron-controller, 2 of which",
        "FOR A TRIAL ONLY",
        "workron, default",
        "PVC",
        "definitions of Job",
    ],
    "own-database": [
        "the one that Secret workron-db-app names",
        "team-a, team-b",
        "all that is in your database",
    ],
    "one-namespace": ["kubectl apply -n team-a", "all that is in your database"],
    "all-namespaces": ["in EVERY namespace", "FOR A TRIAL ONLY"],
    "everything": ["team-a, team-b", "PVC"],
}


def _record(case: pathlib.Path) -> dict[str, Any]:
    """Give what Helm would keep of a release with these values."""
    words = ("install", "workron", chart.CHART, "--namespace", "workron", "--values", case)
    said = chart.call("helm", *words, "--dry-run=client", "--output=json")
    assert said.returncode == 0, said.stderr
    record: dict[str, Any] = json.loads(said.stdout)
    return record


def test_release_is_kept_in_a_fraction_of_what_a_secret_holds(
    case: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = gzip.compress(json.dumps(_record(case)).encode())
    # Encoded once by Helm, and once more as the value of a Secret.
    size = len(base64.b64encode(base64.b64encode(record)))
    with capsys.disabled():
        print(f"\na release of {case.stem}: {size / 1000:.0f} kB")  # noqa: T201 - a figure to be seen
    assert size < _MOST_BYTES


def test_versions_are_those_of_the_project() -> None:
    project = tomllib.loads((chart.ROOT / "pyproject.toml").read_text())["project"]
    assert _CHART["version"] == _CHART["appVersion"] == project["version"]


def test_images_in_the_annotations_are_those_of_the_values() -> None:
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text())
    images = [values["image"], values["workerImage"], values["database"]["trial"]["image"]]
    version = _CHART["appVersion"]
    told = yaml.safe_load(_CHART["annotations"]["artifacthub.io/images"])
    assert [one["image"] for one in told] == [
        f"{one['repository']}:{one['tag'] or version}" for one in images
    ]


def test_kinds_in_the_annotations_are_those_of_the_chart() -> None:
    told = yaml.safe_load(_CHART["annotations"]["artifacthub.io/crds"])
    made = {
        one["metadata"]["name"]: one["spec"]["names"]["kind"]
        for one in chart.of_kind(chart.render(), "CustomResourceDefinition")
    }
    assert {one["name"]: one["kind"] for one in told} == made


def test_older_kubernetes_is_refused_by_name(helm: str) -> None:
    said = chart.call(helm, "template", "workron", chart.CHART, "--kube-version", "1.32.9")
    assert said.returncode != 0
    assert ">=1.33.0" in said.stderr


def test_no_image_names_a_host_that_is_not_the_reader_s() -> None:
    for container in (
        one for pod in chart.pods(chart.render()).values() for one in chart.containers(pod)
    ):
        assert re.fullmatch(r"[a-z-]+:[\w.-]+", container["image"])


def test_notes_say_what_is_there_and_what_will_be_left(case: pathlib.Path) -> None:
    notes = " ".join(_record(case)["info"]["notes"].split())
    assert [words for words in _NOTES[case.stem] if words not in notes] == []


def test_notes_warn_of_a_trial_only_where_it_is_one() -> None:
    for case in chart.CASES:
        is_trial = chart.of_kind(chart.render(values=case), "StatefulSet") != []
        assert ("TRIAL" in _record(case)["info"]["notes"]) is is_trial


def test_definitions_stay_when_the_release_goes() -> None:
    for given, expected in (("true", {"helm.sh/resource-policy": "keep"}), ("false", None)):
        for one in chart.of_kind(chart.render(f"crds.keep={given}"), "CustomResourceDefinition"):
            assert one["metadata"].get("annotations") == expected


def test_definitions_are_left_to_another_release_if_that_is_wanted() -> None:
    assert chart.of_kind(chart.render("crds.enabled=false"), "CustomResourceDefinition") == []
