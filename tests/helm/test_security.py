"""Every pod of the chart runs under the Pod Security Standard `restricted`."""

from typing import Any

import pytest

from tests.helm import chart

Object = dict[str, Any]

_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
    "projected", "secret",
}  # fmt: skip


def _violations(pod: Object) -> list[str]:
    """List what `restricted` does not allow, and a writable root file system."""
    whole = pod.get("securityContext", {})
    found = [word for word in ("hostNetwork", "hostPID", "hostIPC") if pod.get(word)]
    if whole.get("runAsNonRoot") is not True or whole.get("runAsUser") == 0:
        found.append("may be root")
    if whole.get("seccompProfile") != {"type": "RuntimeDefault"}:
        found.append("seccomp")
    found += [one["name"] for one in pod.get("volumes", []) if not _VOLUMES & one.keys()]
    return found + [
        f"{one['name']}: {what}"
        for one in chart.containers(pod)
        for what in _container_violations(one)
    ]


def _container_violations(container: Object) -> list[str]:
    security = container.get("securityContext", {})
    wanted = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    found = [name for name, value in wanted.items() if security.get(name) != value]
    if any("hostPort" in port for port in container.get("ports", [])):
        found.append("hostPort")
    return found


def test_every_pod_is_restricted(objects: list[Object]) -> None:
    for name, pod in chart.pods(objects).items():
        assert _violations(pod) == [], name


@pytest.mark.parametrize("at", ["securityContext", "containers"])
def test_pod_without_security_context_is_found(at: str) -> None:
    pod = dict(chart.pods(chart.render())["StatefulSet/workron-database"])
    pod[at] = {} if at == "securityContext" else [{"name": "bare"}]
    assert _violations(pod) != []


def test_every_container_has_resources(objects: list[Object]) -> None:
    for pod in chart.pods(objects).values():
        for one in chart.containers(pod):
            assert {"requests", "limits"} <= one["resources"].keys(), one["name"]


def test_each_workload_has_its_own_account(objects: list[Object]) -> None:
    pods = chart.pods(objects)
    accounts = [pod["serviceAccountName"] for pod in pods.values()]
    assert len(set(accounts)) == len(accounts)
    made = chart.of_kind(objects, "ServiceAccount")
    assert {one["metadata"]["name"] for one in made} == set(accounts)
    assert {one["automountServiceAccountToken"] for one in made} == {False}


def test_database_pod_has_no_token_and_no_role() -> None:
    objects = chart.render()
    pod = chart.pods(objects)["StatefulSet/workron-database"]
    assert pod["automountServiceAccountToken"] is False
    assert not any("projected" in one for one in pod["volumes"])
    bindings = chart.of_kind(objects, "RoleBinding") + chart.of_kind(objects, "ClusterRoleBinding")
    subjects = {subject["name"] for one in bindings for subject in one["subjects"]}
    assert pod["serviceAccountName"] not in subjects


def test_network_policies_restrict_the_controller_and_the_database() -> None:
    objects = chart.render("networkPolicy.enabled=true")
    both = chart.of_kind(objects, "NetworkPolicy")
    assert {one["metadata"]["name"] for one in both} == {"workron-controller", "workron-database"}
    for one in both:
        assert one["spec"]["policyTypes"] == ["Ingress", "Egress"]
        assert all("ports" in rule for way in ("ingress", "egress") for rule in one["spec"][way])


def test_only_controllers_and_workers_may_connect_to_the_database() -> None:
    objects = chart.render("networkPolicy.enabled=true")
    [rule] = chart.find(objects, "NetworkPolicy", "workron-database")["spec"]["ingress"]
    names = [one["podSelector"]["matchLabels"]["app.kubernetes.io/name"] for one in rule["from"]]
    assert names == ["workron-controller", "workron-worker"]
    assert "namespaceSelector" not in rule["from"][0]


def test_database_has_no_egress() -> None:
    objects = chart.render(
        "networkPolicy.enabled=true", "networkPolicy.extraEgress[0].ports[0].port=1"
    )
    assert chart.find(objects, "NetworkPolicy", "workron-database")["spec"]["egress"] == []


def test_extra_egress_is_added_to_the_controller() -> None:
    given = ("networkPolicy.enabled=true", "networkPolicy.extraEgress[0].ports[0].port=8443")
    one = chart.find(chart.render(*given), "NetworkPolicy", "workron-controller")
    assert {"ports": [{"port": 8443}]} in one["spec"]["egress"]
