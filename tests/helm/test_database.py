"""The database of a trial, and one of somebody's own."""

from typing import Any

import pytest

from tests.helm import chart

Object = dict[str, Any]


def _store(objects: list[Object]) -> Object:
    """Give where the controller has its store's URL from."""
    [container] = chart.pods(objects)["Deployment/workron-controller"]["containers"]
    reference: Object = container["env"][0]["valueFrom"]["secretKeyRef"]
    return reference


def test_no_rendering_has_a_password_so_that_none_can_change_one() -> None:
    secret = chart.find(chart.render(), "Secret", "workron-database")
    assert not secret.keys() & {"data", "stringData"}


def test_two_renderings_are_the_same(helm: str) -> None:
    words = ("template", "workron", chart.CHART, "--kube-version", chart.OLDEST)
    assert chart.call(helm, *words).stdout == chart.call(helm, *words).stdout


def test_what_belongs_together_stays_together_when_the_release_goes() -> None:
    objects = chart.render()
    secret = chart.find(objects, "Secret", "workron-database")
    assert secret["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    [volume] = chart.find(objects, "StatefulSet", "workron-database")["spec"][
        "volumeClaimTemplates"
    ]
    assert volume["metadata"]["name"] == "data"


def test_trial_reads_the_url_that_its_password_was_put_into() -> None:
    objects = chart.render()
    assert _store(objects) == {"name": "workron-database", "key": "url"}
    pod = chart.pods(objects)["Deployment/workron-controller"]
    [password, migrate] = pod["initContainers"]
    assert (password["args"], migrate["name"]) == (["workron", "workron-database"], "migrate")


def test_only_the_secret_of_the_trial_can_be_given_a_password() -> None:
    [rule] = chart.find(chart.render(), "Role", "workron-database")["rules"]
    assert rule["resourceNames"] == ["workron-database"]
    assert set(rule["verbs"]) == {"get", "patch"}


def test_upgrade_of_the_controller_does_not_restart_the_database() -> None:
    before, after = (
        chart.find(chart.render(*given), "StatefulSet", "workron-database")["spec"]
        for given in ((), ("image.tag=other", "controller.resources.limits.memory=2Gi"))
    )
    assert before == after
    assert "0.1.0" not in str(before)


def test_own_database_is_read_from_its_secret_and_no_trial_is_made() -> None:
    objects = chart.render(values=chart.CHART / "ci" / "own-database.yaml")
    assert _store(objects) == {"name": "workron-db-app", "key": "uri"}
    assert chart.of_kind(objects, "StatefulSet") == chart.of_kind(objects, "Secret") == []
    assert "workron-database" not in str(objects)


@pytest.mark.parametrize(("given", "expected"), [("fast", "fast"), ("", None)])
def test_storage_class_is_the_cluster_s_unless_one_is_named(
    given: str, expected: str | None
) -> None:
    objects = chart.render(f"database.trial.storage.storageClass={given}")
    [claim] = chart.find(objects, "StatefulSet", "workron-database")["spec"]["volumeClaimTemplates"]
    assert claim["spec"].get("storageClassName") == expected


@pytest.mark.parametrize(("setting", "is_there"), [("true", True), ("false", False)])
def test_shared_role_is_asked_for_by_name(setting: str, *, is_there: bool) -> None:
    objects = chart.render(f"database.sharedRole={setting}", "poolNamespaces={one}")
    [container] = chart.pods(objects)["Deployment/workron-controller"]["containers"]
    assert ("--shared-role" in container["args"]) is is_there
