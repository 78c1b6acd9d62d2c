"""Each values file renders to objects that an API server accepts, with both versions of Helm."""

import pathlib
import re
from typing import Any

import pytest
import yaml

from tests.helm import chart, schemas

Objects = list[dict[str, Any]]

_OF_PROMETHEUS = "monitoring.coreos.com/"
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_OF_NO_NAMESPACE = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}


@pytest.mark.parametrize(("word", "outcome"), [("required", "failed"), ("", "skipped")])
def test_missing_helm_fails_when_required_and_skips_otherwise(
    monkeypatch: pytest.MonkeyPatch, word: str, outcome: str
) -> None:
    monkeypatch.setenv("WORKRON_TEST_HELM", word)
    expected = {"failed": pytest.fail.Exception, "skipped": pytest.skip.Exception}[outcome]
    with pytest.raises(expected, match="such-helm is not on the PATH"):
        chart.require("such-helm")


def test_chart_passes_helm_lint(helm: str, case: pathlib.Path) -> None:
    version = ("--kube-version", chart.OLDEST)
    done = chart.run_helm(helm, "lint", "--strict", chart.CHART, "--values", case, *version)
    assert done.returncode == 0, done.stdout + done.stderr


def test_both_versions_of_helm_render_the_same(case: pathlib.Path) -> None:
    old, new = (chart.render(values=case, helm=one) for one in chart.HELMS)
    assert sorted(old, key=str) == sorted(new, key=str)


def test_objects_are_unique(objects: Objects) -> None:
    who = [
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects
    ]
    assert len(set(who)) == len(who)


@pytest.mark.parametrize("version", ["1.33.0", "1.37.0"])
def test_objects_match_the_schemas_of_kubernetes(objects: Objects, version: str) -> None:
    ours = [one for one in objects if not one["apiVersion"].startswith(_OF_PROMETHEUS)]
    assert len(ours) > 10
    assert [line for one in ours for line in schemas.problems(one, version)] == []


def test_schemas_reject_an_unknown_field() -> None:
    wrong = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"prot": 1}}
    [done] = schemas.problems(wrong, "1.33.0")
    assert "'prot' was unexpected" in done


def test_names_and_labels_are_valid(objects: Objects) -> None:
    for one in objects:
        assert len(one["metadata"]["name"]) <= 63
        for value in one["metadata"]["labels"].values():
            assert _LABEL_VALUE.fullmatch(value), value


def test_labels_are_valid_with_the_longest_release_name() -> None:
    name = "r" * 53
    done = chart.run_helm("helm", "template", name, chart.CHART, "--kube-version", chart.OLDEST)
    for one in yaml.load_all(done.stdout, yaml.CSafeLoader):
        for value in (one or {"metadata": {"labels": {}}})["metadata"]["labels"].values():
            assert _LABEL_VALUE.fullmatch(value), value


def test_every_namespaced_object_has_a_namespace(objects: Objects) -> None:
    without = {one["kind"] for one in objects if "namespace" not in one["metadata"]}
    assert without <= _OF_NO_NAMESPACE


def test_each_service_selects_one_workload(objects: Objects) -> None:
    owners = [one for one in objects if one["kind"] in {"Deployment", "StatefulSet"}]
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in owners]
    for service in chart.of_kind(objects, "Service"):
        wanted = service["spec"]["selector"].items()
        assert len([have for have in labels if wanted <= have.items()]) == 1


def test_chart_has_no_object_of_its_own_kinds(objects: Objects) -> None:
    # Helm looks up every kind before it creates the first object.
    assert [one for one in objects if one["apiVersion"].startswith("workron.dev/")] == []


def test_only_helm_test_is_a_hook(objects: Objects) -> None:
    hooks = [one["metadata"].get("annotations", {}).get("helm.sh/hook") for one in objects]
    assert {hook for hook in hooks if hook} == {"test"}


def test_schema_is_migrated_before_the_controller_starts(objects: Objects) -> None:
    pod = chart.pods(objects)["Deployment/workron-controller"]
    migrate = pod["initContainers"][-1]
    assert migrate["args"] == ["migrate", "--timeout", "5m"]
    assert migrate["env"] == pod["containers"][0]["env"][:1]


def test_controller_has_the_store_in_its_environment(objects: Objects) -> None:
    # With it, `kubectl exec deploy/workron-controller -- workron get` works.
    [container] = chart.pods(objects)["Deployment/workron-controller"]["containers"]
    assert [one["name"] for one in container["env"]] == [
        "WORKRON_STORE", "WORKRON_POD_NAME", "WORKRON_POD_NAMESPACE", "WORKRON_POD_UID",
    ]  # fmt: skip


def test_every_argument_of_the_controller_is_a_known_option() -> None:
    page = (chart.ROOT / "docs" / "reference" / "command-line.md").read_text()
    part = page.partition("## workron controller\n")[2].partition("\n## ")[0]
    known = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", part, re.MULTILINE))
    args = [
        word
        for case in chart.CASES
        for word in chart.pods(chart.render(values=case))["Deployment/workron-controller"][
            "containers"
        ][0]["args"]
    ]
    used = {word.partition("=")[0] for word in args if word.startswith("--")}
    assert used <= known
