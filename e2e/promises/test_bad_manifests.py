"""An invalid manifest is rejected, by the API server or with a condition, and blocks no other job.

The API server validates the corpus of manifests, and the controller what the schema admits.
"""

import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.manifests import job, task, workflow
from e2e.namespace import Namespace, wait_until
from e2e.release import RELEASE_NAMESPACE, Release
from tests.corpus import cases

pytestmark = [pytest.mark.timeout(600), pytest.mark.alone]

_ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def idle_cluster(release: Release) -> Iterator[pathlib.Path]:
    """The kubeconfig of the cluster while no controller runs."""
    with release.controllers_stopped():
        yield release.cluster.config


def test_api_server_validates_the_corpus_as_the_models_do(idle_cluster: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.corpus.judge", str(idle_cluster)],
        cwd=_ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_object_that_cannot_run_says_so_when_the_schema_admits_it(namespace: Namespace) -> None:
    unaccepted = cases.of("unaccepted")
    assert unaccepted
    for case in unaccepted:
        name = namespace.kubectl("create", "-f", "-", "-o", "name", stdin=case.text).strip()
        status = _wait_for_stalled(namespace, name)
        [accepted] = [one for one in status["conditions"] if one["type"] == "Stalled"]
        assert accepted["message"], case.name
        namespace.kubectl("delete", name)
    namespace.apply(job("good"))
    namespace.wait_for_phase("good", "Succeeded")


def test_largest_objects_run_or_are_rejected_and_delay_no_other_job(
    namespace: Namespace,
) -> None:
    large = job("annotated", "true")
    # Annotations may have 256 KiB in all, and `apply` would add the object to them once more.
    large["metadata"]["annotations"] = {"note": "n" * (262_144 - len("note"))}
    namespace.kubectl("create", "-f", "-", stdin=json.dumps(large))
    env = [{"name": f"V{at}", "value": "x" * 10_000} for at in range(90)]
    namespace.kubectl("create", "-f", "-", stdin=json.dumps(job("heavy", env=env)))
    tasks = (task(f"t{at}", command=f"true # {'x' * 250}") for at in range(2_000))
    namespace.kubectl("create", "-f", "-", stdin=json.dumps(workflow("long", *tasks)))
    namespace.apply(job("small"))
    namespace.wait_for_phase("small", "Succeeded")
    namespace.wait_for_phase("annotated", "Succeeded")
    namespace.wait_for_phase("long", "Succeeded", "wflow", 300)
    wait_until(
        lambda: namespace.status("heavy").get("phase") in {"Succeeded", "Failed"},
        "the job has ended",
    )


def test_command_gets_unicode_unchanged(namespace: Namespace) -> None:
    odd = "e\u0301 \U0001f680 \u2028 \u00df"
    namespace.apply(job("odd", 'printf %s "$ODD"', env=[{"name": "ODD", "value": odd}]))
    assert namespace.wait_for_phase("odd", "Succeeded")["outputTail"].split() == odd.split()


def test_other_jobs_run_when_a_namespace_is_deleted(
    namespace: Namespace, cluster: Cluster, release: Release
) -> None:
    cluster.kubectl("create", "namespace", "short-lived")
    deleted = Namespace(cluster, "short-lived")
    deleted.apply(*(job(f"j{at}") for at in range(20)))
    # No worker is left for `finally`, so it is cancelled, too.
    deleted.apply(workflow("flow", task("first"), **{"finally": [task("last")]}))
    wait_until(lambda: release.sql(f"SELECT {deleted.run_id_sql('flow')}"), "its run is stored")
    cluster.kubectl("delete", "namespace", "short-lived", "--wait=false")
    namespace.apply(job("stays"))
    namespace.wait_for_phase("stays", "Succeeded")
    wait_until(
        lambda: cluster.try_kubectl("get", "ns", "short-lived").returncode, "the namespace is gone"
    )
    states = deleted.ended_states_sql("flow")
    wait_until(lambda: release.sql(states) == "first:Cancelled last:Cancelled", "its run has ended")


def test_no_controller_has_restarted_after_the_tests_above(cluster: Cluster) -> None:
    label = "app.kubernetes.io/name=workron-controller"
    pods: list[dict[str, Any]] = cluster.get_json("pods", "-n", RELEASE_NAMESPACE, "-l", label)[
        "items"
    ]
    counts = [one["restartCount"] for pod in pods for one in pod["status"]["containerStatuses"]]
    assert counts == [0, 0]


def _wait_for_stalled(namespace: Namespace, name: str) -> dict[str, Any]:
    """Wait until an object is stalled, and return its status."""
    wanted = {"type": "Stalled", "status": "True"}

    def status() -> dict[str, Any]:
        found: dict[str, Any] = namespace.cluster.get_json("-n", namespace.name, name)
        return dict(found.get("status", {}))

    def is_stalled() -> bool:
        conditions = status().get("conditions", ())
        return any(wanted.items() <= one.items() for one in conditions)

    wait_until(is_stalled, f"{name} is stalled")
    return status()
