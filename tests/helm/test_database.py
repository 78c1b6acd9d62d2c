"""The trial database, and an existing database."""

from typing import Any

import pytest

from tests.helm import chart

Object = dict[str, Any]


def _store(objects: list[Object]) -> Object:
    """Return the Secret reference of the controller's store URL."""
    [container] = chart.pods(objects)["Deployment/workron-controller"]["containers"]
    reference: Object = container["env"][0]["valueFrom"]["secretKeyRef"]
    return reference


def test_rendered_secret_has_no_password() -> None:
    secret = chart.find(chart.render(), "Secret", "workron-database")
    assert not secret.keys() & {"data", "stringData"}


def test_rendering_is_deterministic(helm: str) -> None:
    words = ("template", "workron", chart.CHART, "--kube-version", chart.OLDEST)
    assert chart.run_helm(helm, *words).stdout == chart.run_helm(helm, *words).stdout


def test_secret_and_volume_are_kept_on_uninstall() -> None:
    objects = chart.render()
    secret = chart.find(objects, "Secret", "workron-database")
    assert secret["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    [volume] = chart.find(objects, "StatefulSet", "workron-database")["spec"][
        "volumeClaimTemplates"
    ]
    assert volume["metadata"]["name"] == "data"


def test_controller_reads_the_url_that_the_password_program_stores() -> None:
    objects = chart.render()
    assert _store(objects) == {"name": "workron-database", "key": "url"}
    pod = chart.pods(objects)["Deployment/workron-controller"]
    [password, migrate] = pod["initContainers"]
    assert (password["args"], migrate["name"]) == (["workron", "workron-database"], "migrate")


def test_role_allows_only_the_secret_of_the_trial_database() -> None:
    [rule] = chart.find(chart.render(), "Role", "workron-database")["rules"]
    assert rule["resourceNames"] == ["workron-database"]
    assert set(rule["verbs"]) == {"get", "patch"}


def test_database_pod_is_unchanged_by_an_upgrade() -> None:
    before, after = (
        chart.find(chart.render(*given), "StatefulSet", "workron-database")["spec"]
        for given in ((), ("image.tag=other", "controller.resources.limits.memory=2Gi"))
    )
    assert before == after
    assert "0.1.0" not in str(before)


def test_no_trial_database_is_rendered_when_a_secret_is_given() -> None:
    objects = chart.render(values=chart.CHART / "ci" / "own-database.yaml")
    assert _store(objects) == {"name": "workron-db-app", "key": "uri"}
    assert chart.of_kind(objects, "StatefulSet") == chart.of_kind(objects, "Secret") == []
    assert "workron-database" not in str(objects)


@pytest.mark.parametrize(("given", "expected"), [("fast", "fast"), ("", None)])
def test_storage_class_is_the_default_unless_one_is_given(given: str, expected: str | None) -> None:
    objects = chart.render(f"database.trial.storage.storageClass={given}")
    [claim] = chart.find(objects, "StatefulSet", "workron-database")["spec"]["volumeClaimTemplates"]
    assert claim["spec"].get("storageClassName") == expected


@pytest.mark.parametrize(("setting", "is_there"), [("true", True), ("false", False)])
def test_shared_role_is_passed_to_the_controller(setting: str, *, is_there: bool) -> None:
    objects = chart.render(f"database.sharedRole={setting}", "workerNamespaces={one}")
    [container] = chart.pods(objects)["Deployment/workron-controller"]["containers"]
    assert ("--shared-role" in container["args"]) is is_there
