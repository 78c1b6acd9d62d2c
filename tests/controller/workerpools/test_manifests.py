"""What a WorkerPool becomes: what is in its pods, who sees what there, and which pods are alike."""

import base64
import json
import pathlib
import re
from typing import Any

import pytest
import typer.main
import yaml

from tests.controller.workerpools.observed_objects import POOL, spec
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


def test_agent_is_ours_and_the_runner_is_a_sidecar_in_the_image_of_the_pool() -> None:
    pod = _pod(image="theirs:2", slots=8, drainTimeout="90s")
    agent, runner = _container(pod, "agent"), _container(pod, "runner")
    assert (agent["image"], runner["image"]) == (_IMAGE, "theirs:2")
    assert runner["restartPolicy"] == "Always"
    assert [one["name"] for one in pod["initContainers"]] == ["pack", "runner"]
    words = " ".join(agent["args"])
    assert words.startswith("worker --slots 8 --heartbeat 2s --grace 1m30s --health 0.0.0.0:")


def test_words_of_the_agent_are_those_that_the_program_takes() -> None:
    group = typer.main.get_command(app.app())
    context = group.context_class(group)
    pod = _pod(slots=8, heartbeat="500ms", drainTimeout="90s")
    name, *words = _container(pod, "agent")["args"]
    command = group.get_command(context, name)  # type: ignore[attr-defined]
    taken = command.make_context(name, words).params
    assert (taken["slots"], taken["heartbeat"], taken["grace"]) == (8, "500ms", "1m30s")


def test_words_of_the_runner_are_those_that_it_takes() -> None:
    python, isolated, file, *words = _container(_pod(), "runner")["command"]
    assert (python, isolated, file[-4:]) == ("python3", "-IS", ".pyz")
    taken = __main__._parser().parse_args(words)
    assert (str(taken.socket), taken.hand_down) == ("/workron/socket/runner", True)
    assert (taken.try_isolate, taken.isolate) == (True, False)


def test_pool_without_an_image_runs_commands_in_ours() -> None:
    assert {one["image"] for one in _all(_pod())} == {_IMAGE}


def test_runner_runs_what_was_packed_and_the_agent_finds_it_where_it_waits() -> None:
    pod = _pod()
    pack, runner, agent = (_container(pod, name) for name in ("pack", "runner", "agent"))
    program = pack["command"][-1]
    assert program in runner["command"]
    socket = runner["command"][runner["command"].index("--socket") + 1]
    assert {"name": "WORKRON_RUNNER", "value": socket} in agent["env"]
    # What the pool brings along is for its commands.
    assert "--hand-down" in runner["command"]
    shared = {one["name"]: one for one in runner["volumeMounts"]}
    assert shared["workron-code"]["readOnly"]
    assert "workron-code" not in {one["name"] for one in agent["volumeMounts"]}
    assert "workron-socket" in {one["name"] for one in agent["volumeMounts"]}


def test_secret_is_seen_by_the_agent_alone() -> None:
    pod = _pod(**_every_field())
    for one in _all(pod):
        assert ("workron-pool-gpu" in json.dumps(one)) == (one["name"] == "agent")
    assert "workron-pool-gpu" not in json.dumps(pod["volumes"])


def test_what_the_pool_brings_along_is_seen_by_the_runner_alone() -> None:
    pod = _pod(**_every_field())
    runner = _container(pod, "runner")
    assert {"name": "HF_HOME", "value": "/models"} in runner["env"]
    assert {"prefix": "DB_", "secretRef": {"name": "database"}} in runner["envFrom"]
    assert "/models" in {one["mountPath"] for one in runner["volumeMounts"]}
    assert runner["resources"]["limits"]["nvidia.com/gpu"] == "1"
    for name in ("agent", "pack"):
        told = json.dumps(_container(pod, name))
        assert not any(word in told for word in ("HF_HOME", "/models", "nvidia", "serviceaccount"))


@pytest.mark.parametrize("fields", [{}, _every_field()], ids=["no field", "every field"])
def test_pod_passes_the_restricted_standard(fields: Raw) -> None:
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


def test_containers_do_not_see_each_others_processes() -> None:
    assert _pod()["shareProcessNamespace"] is False


def test_token_of_the_account_is_mounted_nowhere_unless_the_pool_says_so() -> None:
    pod = _pod(serviceAccountName="trainer")
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == "trainer"
    assert "serviceaccount" not in json.dumps(pod).lower().replace(
        "serviceaccountname", ""
    ).replace("automountserviceaccounttoken", "")


def test_token_of_the_account_is_seen_by_the_runner_alone_if_the_pool_says_so() -> None:
    pod = _pod(automountServiceAccountToken=True)
    assert pod["automountServiceAccountToken"] is False
    mounted = {one["name"] for one in _all(pod) if "workron-account" in json.dumps(one)}
    assert mounted == {"runner"}
    assert "serviceAccountToken" in json.dumps(pod["volumes"])


def test_kubelet_waits_longer_than_the_agent() -> None:
    assert _pod(drainTimeout="90s")["terminationGracePeriodSeconds"] == 120
    assert _pod(drainTimeout="0s")["terminationGracePeriodSeconds"] == 30
    assert _pod(drainTimeout="1500ms")["terminationGracePeriodSeconds"] == 32


def test_pod_is_put_where_the_pool_says() -> None:
    pod = _pod(**_every_field())
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "disk": "ssd"}
    assert pod["priorityClassName"] == "high"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["tolerations"][0] == {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert pod["affinity"]["podAntiAffinity"]


def test_every_mount_has_its_volume() -> None:
    pod = _pod(**_every_field())
    volumes = [one["name"] for one in pod["volumes"]]
    assert len(volumes) == len(set(volumes))
    assert {mount["name"] for one in _all(pod) for mount in one["volumeMounts"]} <= set(volumes)


def test_labels_of_the_pool_come_along_and_undo_none_of_ours() -> None:
    labels = {"team": "lab", "app.kubernetes.io/managed-by": "me"}
    made = manifests.replica_set(POOL, _template(labels=labels), 1)
    told = made["spec"]["template"]["metadata"]["labels"]
    assert told == {**made["spec"]["selector"]["matchLabels"], "team": "lab"}
    assert told["app.kubernetes.io/managed-by"] == "workron-controller"
    assert told["app.kubernetes.io/name"] == "workron-worker"
    assert told["workron.dev/pool"] == "gpu"


def test_set_is_owned_by_the_pool_and_named_by_its_revision() -> None:
    template = _template()
    made = manifests.replica_set(POOL, template, 3)
    which = manifests.revision(template)
    assert made["metadata"]["name"] == f"workron-gpu-{which}"
    assert made["metadata"]["labels"]["workron.dev/revision"] == which
    assert made["spec"]["replicas"] == 3
    [owner] = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("WorkerPool", "pool-uid", True)


def test_longest_name_fits_everywhere() -> None:
    pool = manifests.PoolNames("lab", "x" * 52, "uid")
    made = manifests.replica_set(pool, manifests.pod_template(pool, spec(), _IMAGE, _URL), 1)
    assert len(made["metadata"]["name"]) <= 253
    assert all(len(value) <= 63 for value in made["metadata"]["labels"].values())


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
def test_what_is_no_matter_of_pods_makes_no_new_revision(fields: Raw) -> None:
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
def test_what_is_in_pods_makes_a_new_revision(fields: Raw) -> None:
    assert manifests.revision(_template(**fields)) != manifests.revision(_template())


def test_revision_is_the_same_in_whatever_order_fields_come() -> None:
    fields = _every_field()
    turned = dict(reversed(fields.items()))
    assert manifests.revision(_template(**turned)) == manifests.revision(_template(**fields))


def test_revision_is_a_digest_of_bytes_that_every_python_makes() -> None:
    # sha256sum of {"a":{"c":"x","d":true},"b":["\\u00e4",1,null]}
    template = {"b": ["ä", 1, None], "a": {"d": True, "c": "x"}}
    assert manifests.revision(template) == "f9ae989fc8"


def test_revision_is_a_part_of_a_name() -> None:
    assert re.fullmatch("[0-9a-f]{10}", manifests.revision(_template()))


def test_secret_holds_the_url_and_the_token() -> None:
    made = manifests.secret(POOL, "postgresql://me:pä@db/x", "tok")
    data = {key: base64.b64decode(value).decode() for key, value in made["data"].items()}
    assert data == {"store": "postgresql://me:pä@db/x", "token": "tok"}
    assert made["metadata"]["name"] == "workron-pool-gpu"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "pool-uid"


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
def test_pods_of_another_database_are_of_another_revision(url: str, *, is_same: bool) -> None:
    here, there = (manifests.pod_template(POOL, spec(), _IMAGE, one) for one in (_URL, url))
    assert (manifests.revision(here) == manifests.revision(there)) is is_same


def test_nothing_in_a_pod_tells_the_password_of_the_database() -> None:
    assert "mine" not in json.dumps(_template())
