"""The permissions of each role: the least that is needed, and workers only where values allow."""

import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helm import chart
from workron_controller.kube import resources

Object = dict[str, Any]
Objects = list[Object]

_PAGE = chart.ROOT / "docs" / "how-to" / "install.md"
_DANGEROUS = {"escalate", "bind", "impersonate"}


def _rules(objects: Objects) -> Iterator[tuple[str, Object]]:
    for kind in ("Role", "ClusterRole"):
        for role in chart.of_kind(objects, kind):
            for rule in role["rules"]:
                yield role["metadata"]["name"], rule


def _bound_namespaces(objects: Objects, role: str) -> list[str]:
    """Return the namespaces in which a ClusterRole is bound; `*` is the whole cluster."""
    bindings = chart.of_kind(objects, "RoleBinding") + chart.of_kind(objects, "ClusterRoleBinding")
    bound = [one for one in bindings if one["roleRef"]["name"] == role]
    return sorted(one["metadata"].get("namespace", "*") for one in bound)


def test_no_rule_has_a_wildcard(objects: Objects) -> None:
    for role, rule in _rules(objects):
        words = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
        assert not any("*" in word for word in words), role
        assert not words & _DANGEROUS, role


def test_controller_may_create_events() -> None:
    event = resources.EVENTS
    rules = [rule for role, rule in _rules(chart.render()) if role == "workron-controller"]
    [rule] = [rule for rule in rules if event.plural in rule["resources"]]
    assert (rule["apiGroups"], rule["verbs"]) == ([event.group], ["create"])


@pytest.mark.parametrize(
    ("settings", "watched", "pools"),
    [
        ([], ["*"], ["default", "workron"]),
        (["workerNamespaces={a,b}"], ["*"], ["a", "b"]),
        (["watchNamespaces={a,b}"], ["a", "b"], ["a", "b"]),
        (["watchNamespaces={a,b}", "workerNamespaces={b}"], ["a", "b"], ["b"]),
        (["allNamespaces=true"], ["*"], ["*"]),
    ],
)
def test_controller_is_bound_where_the_values_say(
    settings: list[str], watched: list[str], pools: list[str]
) -> None:
    objects = chart.render(*settings)
    assert _bound_namespaces(objects, "workron-controller") == watched
    assert _bound_namespaces(objects, "workron-pools") == pools
    assert _said(objects, "--watch-namespace") == [one for one in watched if one != "*"]


def _said(objects: Objects, option: str) -> list[str]:
    [container] = chart.pods(objects)["Deployment/workron-controller"]["containers"]
    pairs = (word.partition("=") for word in container["args"])
    return sorted(value for name, _, value in pairs if name == option)


def test_every_subject_is_an_account_of_the_release(objects: Objects) -> None:
    made = {one["metadata"]["name"] for one in chart.of_kind(objects, "ServiceAccount")}
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for one in chart.of_kind(objects, kind):
            [subject] = one["subjects"]
            assert subject["namespace"] == "workron"
            assert subject["name"] in made


def test_every_bound_role_exists_or_belongs_to_another_release(
    case: pathlib.Path, objects: Objects
) -> None:
    roles = chart.of_kind(objects, "Role") + chart.of_kind(objects, "ClusterRole")
    made = {(one["kind"], one["metadata"]["name"]) for one in roles}
    bindings = chart.of_kind(objects, "RoleBinding") + chart.of_kind(objects, "ClusterRoleBinding")
    missing = {(one["roleRef"]["kind"], one["roleRef"]["name"]) for one in bindings} - made
    is_second = case.stem == "one-namespace"
    assert {kind for kind, _ in missing} == ({"ClusterRole"} if is_second else set())


def test_second_release_has_no_cluster_wide_objects() -> None:
    objects = chart.render(values=chart.CHART / "ci" / "one-namespace.yaml")
    assert [one["kind"] for one in objects if "namespace" not in one["metadata"]] == []


def test_no_role_may_list_secrets() -> None:
    verbs = {
        verb
        for _, rule in _rules(chart.render())
        for verb in rule["verbs"]
        if "secrets" in rule["resources"]
    }
    assert not verbs & {"list", "watch", "deletecollection"}


_FOR_USERS = {"workron-view", "workron-edit"}


def test_controller_may_watch_only_its_own_kinds() -> None:
    rules = [rule for role, rule in _rules(chart.render()) if role not in _FOR_USERS]
    watched = {one for rule in rules if "watch" in rule["verbs"] for one in rule["resources"]}
    assert watched == {one.plural for one in resources.BY_KIND.values()}


def test_view_and_edit_roles_aggregate_to_those_of_kubernetes() -> None:
    objects = chart.render()
    view, edit = (chart.find(objects, "ClusterRole", f"workron-{one}") for one in ("view", "edit"))
    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    assert "rbac.authorization.k8s.io/aggregate-to-view" not in edit["metadata"]["labels"]
    assert {verb for rule in view["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_docs_list_the_permissions_of_every_role() -> None:
    found = re.findall(
        r"^\| `(workron-\w+)` \| (.+?) \| (.+?) \|$", _PAGE.read_text(), re.MULTILINE
    )
    made = [
        (role, _words(_resources(rule)), ", ".join(rule["verbs"]))
        for role, rule in _rules(chart.render())
    ]
    assert sorted(found) == sorted(made)


def _resources(rule: Object) -> list[str]:
    names = rule.get("resourceNames", [""])
    return [
        " ".join(filter(None, (resource, name))) for resource in rule["resources"] for name in names
    ]


def _words(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
