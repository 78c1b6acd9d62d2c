"""The objects of a WorkerPool, and which changes make a new revision."""

import base64
import json
import pathlib
import re
from datetime import timedelta
from typing import Any

import pytest
import yaml

from tests.controller.workerpools.observed_objects import POOL, spec
from tests.helm import schemas
from workron.cli import app
from workron_controller.workerpools import manifests
from workron_runner import __main__

_IMAGE = "ours:1"
_URL = "postgresql://me:mine@db.lab.svc:5432/jobs"
_CORPUS = pathlib.Path(__file__).parents[2] / "core" / "manifest" / "corpus" / "good"

Raw = dict[str, Any]


def _template(**fields: Any) -> Raw:
    return manifests.pod_template(POOL, spec(**fields), _IMAGE, _URL)


def _pod(**fields: Any) -> Raw:
    found: Raw = _template(**fields)["spec"]
    return found


def _container(pod: Raw, name: str) -> Raw:
    [found] = [one for one in _all(pod) if one["name"] == name]
    return found


def _all(pod: Raw) -> list[Raw]:
    return [*pod["initContainers"], *pod["containers"]]


def _every_field() -> Raw:
    text = (_CORPUS / "pool-every-field.yaml").read_text()
    found: Raw = next(iter(yaml.safe_load_all(text)))["spec"]
    return found


def test_runner_is_a_sidecar_in_the_image_of_the_pool() -> None:
    pod = _pod(image="custom:2", slots=8, drainTimeout="90s")
    agent, runner = _container(pod, "agent"), _container(pod, "runner")
    assert (agent["image"], runner["image"]) == (_IMAGE, "custom:2")
    assert runner["restartPolicy"] == "Always"
    assert [one["name"] for one in pod["initContainers"]] == ["pack", "runner"]
    arguments = " ".join(agent["args"])
    assert arguments.startswith("worker --slots 8 --heartbeat 2s --grace 1m30s --health 0.0.0.0:")


def test_command_line_of_the_agent_is_accepted_by_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORKRON_STORE", _URL)
    group = app.app()
    pod = _pod(slots=8, heartbeat="500ms", drainTimeout="90s")
    name, *arguments = _container(pod, "agent")["args"]
    parsed = group.commands[name].make_context(name, arguments).params
    assert parsed["slots"] == 8
    assert parsed["heartbeat"] == timedelta(milliseconds=500)
    assert parsed["grace"] == timedelta(seconds=90)


def test_command_line_of_the_runner_is_accepted_by_the_runner() -> None:
    python, isolated, file, *arguments = _container(_pod(), "runner")["command"]
    assert (python, isolated, file[-4:]) == ("python3", "-IS", ".pyz")
    parsed = __main__._parser().parse_args(arguments)
    assert (str(parsed.socket), parsed.hand_down) == ("/workron/socket/runner", True)
    assert (parsed.try_isolate, parsed.isolate) == (True, False)


def test_runner_has_our_image_when_the_pool_has_none() -> None:
    assert {one["image"] for one in _all(_pod())} == {_IMAGE}


def test_containers_share_the_packed_code_and_the_socket() -> None:
    pod = _pod()
    pack, runner, agent = (_container(pod, name) for name in ("pack", "runner", "agent"))
    program = pack["command"][-1]
    assert program in runner["command"]
    socket = runner["command"][runner["command"].index("--socket") + 1]
    assert {"name": "WORKRON_RUNNER", "value": socket} in agent["env"]
    assert "--hand-down" in runner["command"]
    shared = {one["name"]: one for one in runner["volumeMounts"]}
    assert shared["workron-code"]["readOnly"]
    assert "workron-code" not in {one["name"] for one in agent["volumeMounts"]}
    assert "workron-socket" in {one["name"] for one in agent["volumeMounts"]}


def test_secret_is_visible_to_the_agent_only() -> None:
    pod = _pod(**_every_field())
    for one in _all(pod):
        assert ("workron-pool-gpu" in json.dumps(one)) == (one["name"] == "agent")
    assert "workron-pool-gpu" not in json.dumps(pod["volumes"])


def test_fields_of_the_pool_apply_to_the_runner_only() -> None:
    pod = _pod(**_every_field())
    runner = _container(pod, "runner")
    assert {"name": "HF_HOME", "value": "/models"} in runner["env"]
    assert {"prefix": "DB_", "secretRef": {"name": "database"}} in runner["envFrom"]
    assert "/models" in {one["mountPath"] for one in runner["volumeMounts"]}
    assert runner["resources"]["limits"]["nvidia.com/gpu"] == "1"
    for name in ("agent", "pack"):
        text = json.dumps(_container(pod, name))
        assert not any(word in text for word in ("HF_HOME", "/models", "nvidia", "serviceaccount"))


@pytest.mark.parametrize("fields", [{}, _every_field()], ids=["no field", "every field"])
def test_pod_meets_the_restricted_pod_security_standard(fields: Raw) -> None:
    pod = _pod(**fields)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for one in _all(pod):
        security = one["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["readOnlyRootFilesystem"] is True
        assert not {"privileged", "runAsUser", "seccompProfile"} & security.keys()
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    kinds = {kind for one in pod["volumes"] for kind in one if kind != "name"}
    allowed = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
    assert kinds <= allowed


def test_containers_do_not_share_a_process_namespace() -> None:
    assert _pod()["shareProcessNamespace"] is False


def test_service_account_token_is_not_mounted_by_default() -> None:
    pod = _pod(serviceAccountName="trainer")
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == "trainer"
    assert "serviceaccount" not in json.dumps(pod).lower().replace(
        "serviceaccountname", ""
    ).replace("automountserviceaccounttoken", "")


def test_service_account_token_is_mounted_in_the_runner_only_when_the_pool_asks_for_it() -> None:
    pod = _pod(automountServiceAccountToken=True)
    assert pod["automountServiceAccountToken"] is False
    mounted = {one["name"] for one in _all(pod) if "workron-account" in json.dumps(one)}
    assert mounted == {"runner"}
    assert "serviceAccountToken" in json.dumps(pod["volumes"])


def test_grace_period_is_longer_than_the_drain_timeout() -> None:
    assert _pod(drainTimeout="90s")["terminationGracePeriodSeconds"] == 120
    assert _pod(drainTimeout="0s")["terminationGracePeriodSeconds"] == 30
    assert _pod(drainTimeout="1500ms")["terminationGracePeriodSeconds"] == 32


def test_pod_has_the_placement_fields_of_the_pool() -> None:
    pod = _pod(**_every_field())
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "disk": "ssd"}
    assert pod["priorityClassName"] == "high"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["tolerations"][0] == {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert pod["affinity"]["podAntiAffinity"]


def test_every_mount_has_a_volume() -> None:
    pod = _pod(**_every_field())
    volumes = [one["name"] for one in pod["volumes"]]
    assert len(volumes) == len(set(volumes))
    assert {mount["name"] for one in _all(pod) for mount in one["volumeMounts"]} <= set(volumes)


def test_labels_of_the_pool_do_not_override_labels_of_the_controller() -> None:
    labels = {"team": "lab", "app.kubernetes.io/managed-by": "me"}
    manifest = manifests.replica_set(POOL, _template(labels=labels), 1)
    labels_of_pods = manifest["spec"]["template"]["metadata"]["labels"]
    assert labels_of_pods == {**manifest["spec"]["selector"]["matchLabels"], "team": "lab"}
    assert labels_of_pods["app.kubernetes.io/managed-by"] == "workron-controller"
    assert labels_of_pods["app.kubernetes.io/name"] == "workron-worker"
    assert labels_of_pods["workron.dev/pool"] == "gpu"


def test_replica_set_is_owned_by_the_pool_and_named_by_its_revision() -> None:
    template = _template()
    manifest = manifests.replica_set(POOL, template, 3)
    digest = manifests.revision(template)
    assert manifest["metadata"]["name"] == f"workron-gpu-{digest}"
    assert manifest["metadata"]["labels"]["workron.dev/revision"] == digest
    assert manifest["spec"]["replicas"] == 3
    [owner] = manifest["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("WorkerPool", "pool-uid", True)


def test_names_and_labels_fit_when_the_pool_name_is_longest() -> None:
    pool = manifests.PoolNames("lab", "x" * 52, "uid")
    manifest = manifests.replica_set(pool, manifests.pod_template(pool, spec(), _IMAGE, _URL), 1)
    assert len(manifest["metadata"]["name"]) <= 253
    assert all(len(value) <= 63 for value in manifest["metadata"]["labels"].values())


@pytest.mark.parametrize(
    "fields",
    [
        {"minReplicas": 1},
        {"maxReplicas": 99},
        {"replicas": 3},
        {"lease": "30s"},
        {"slots": 4},
        {"volumes": [], "env": []},
    ],
    ids=str,
)
def test_revision_stays_the_same_when_the_pods_do_not_change(fields: Raw) -> None:
    assert manifests.revision(_template(**fields)) == manifests.revision(_template())


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "other"},
        {"slots": 5},
        {"drainTimeout": "1m"},
        {"env": [{"name": "A", "value": ""}]},
    ],
    ids=str,
)
def test_revision_differs_when_the_pods_change(fields: Raw) -> None:
    assert manifests.revision(_template(**fields)) != manifests.revision(_template())


def test_revision_is_the_same_when_the_order_of_fields_differs() -> None:
    fields = _every_field()
    reversed_fields = dict(reversed(fields.items()))
    assert manifests.revision(_template(**reversed_fields)) == manifests.revision(
        _template(**fields)
    )


def test_revision_is_the_digest_of_sorted_ascii_json() -> None:
    # sha256sum of {"a":{"c":"x","d":true},"b":["\\u00e4",1,null]}
    template = {"b": ["ä", 1, None], "a": {"d": True, "c": "x"}}
    assert manifests.revision(template) == "f9ae989fc8"


def test_revision_is_valid_in_a_name() -> None:
    assert re.fullmatch("[0-9a-f]{10}", manifests.revision(_template()))


def test_secret_has_the_url_and_the_token() -> None:
    manifest = manifests.secret(POOL, "postgresql://me:pä@db/x", "tok")
    data = {key: base64.b64decode(value).decode() for key, value in manifest["data"].items()}
    assert data == {"store": "postgresql://me:pä@db/x", "token": "tok"}
    assert manifest["metadata"]["name"] == "workron-pool-gpu"
    assert manifest["metadata"]["ownerReferences"][0]["uid"] == "pool-uid"


@pytest.mark.parametrize(
    ("url", "is_same"),
    [
        ("postgresql://me:changed@db.lab.svc:5432/jobs", True),
        ("postgresql://you@db.lab.svc:5432/jobs?password=mine", True),
        ("postgresql://me:mine@new.lab.svc:5432/jobs", False),
        ("postgresql://me:mine@db.lab.svc:5433/jobs", False),
        ("postgresql://me:mine@db.lab.svc:5432/other", False),
        ("postgresql://me:mine@db.lab.svc:5432/jobs?sslmode=require", False),
    ],
)
def test_revision_differs_when_the_database_differs(url: str, *, is_same: bool) -> None:
    template, other = (manifests.pod_template(POOL, spec(), _IMAGE, one) for one in (_URL, url))
    assert (manifests.revision(template) == manifests.revision(other)) is is_same


def test_pod_template_does_not_contain_the_database_password() -> None:
    assert "mine" not in json.dumps(_template())


@pytest.mark.parametrize("fields", [{}, _every_field()], ids=["no field", "every field"])
@pytest.mark.parametrize("version", ["1.33.0", "1.37.0"])
def test_manifests_have_no_unknown_fields(fields: dict[str, Any], version: str) -> None:
    template = manifests.pod_template(POOL, spec(**fields), "ours:1", "memory:")
    manifest = [
        manifests.replica_set(POOL, template, 1),
        manifests.secret(POOL, "memory:", "token"),
    ]
    assert [one for body in manifest for one in schemas.problems(body, version)] == []
