"""A pool has as many workers as its queue needs, from zero and back to zero.

No change of a pool interrupts a running job, neither scaling down nor a new template. Only a job
that does not end within `drainTimeout` is requeued, which does not count as an attempt.
"""

import pytest

from e2e.manifests import job, pool
from e2e.namespace import Namespace, command_waiting_for, wait_until

pytestmark = pytest.mark.timeout(900)

_IDLE_SECONDS = 300
"""How long a pool keeps idle workers."""


@pytest.fixture(autouse=True)
def _empty_namespace(namespace: Namespace) -> None:
    namespace.clear()


def test_running_jobs_finish_when_their_pool_is_scaled_down(
    namespace: Namespace,
) -> None:
    names = ("one", "two", "three")
    namespace.apply(pool("many", slots=1, replicas=3))
    namespace.apply(*(job(name, command_waiting_for(name), pool="many") for name in names))
    pods = {name: namespace.pod_running(name) for name in names}
    namespace.patch("many", {"replicas": 1}, "wpool")
    wait_until(lambda: len(namespace.pods("many")) == 1, "two of three pods are being deleted")
    assert set(namespace.phases().values()) == {"Running"}
    for name, pod in pods.items():
        namespace.finish_commands(pod, name)
        status = namespace.wait_for_phase(name, "Succeeded")
        assert (status["attempts"], status["losses"]) == (1, 0)
        assert status["worker"] == pod["metadata"]["uid"]


def test_running_jobs_finish_when_their_pool_gets_a_new_template(
    namespace: Namespace,
) -> None:
    namespace.apply(pool("new", slots=1, replicas=2, env=[{"name": "REVISION", "value": "old"}]))
    busy = [
        job(name, f"{command_waiting_for(name)}; echo $REVISION", pool="new")
        for name in ("one", "two")
    ]
    namespace.apply(*busy)
    pods = {name: namespace.pod_running(name) for name in ("one", "two")}
    namespace.patch("new", {"env": [{"name": "REVISION", "value": "new"}]}, "wpool")
    namespace.apply(job("late", "echo $REVISION", pool="new"))
    assert namespace.wait_for_phase("late", "Succeeded")["outputTail"] == "new\n"
    assert {namespace.status(name)["phase"] for name in pods} == {"Running"}
    for name, pod in pods.items():
        namespace.finish_commands(pod, name)
        status = namespace.wait_for_phase(name, "Succeeded")
        assert (status["attempts"], status["outputTail"]) == (1, "old\n")
    wait_until(lambda: len(namespace.objects("rs")) == 1, "the old ReplicaSet is deleted")


def test_job_is_requeued_when_it_does_not_end_within_the_drain_timeout(
    namespace: Namespace,
) -> None:
    namespace.apply(pool("brisk", slots=1, replicas=1, drainTimeout="3s"))
    namespace.apply(
        job("slow", command_waiting_for("slow"), pool="brisk", maxAttempts=1, maxWorkerLosses=1)
    )
    first = namespace.pod_running("slow")
    namespace.patch("brisk", {"replicas": 0}, "wpool")
    namespace.wait_for_phase("slow", "Queued")
    wait_until(lambda: not namespace.objects("pods"), "the pod is deleted")
    namespace.patch("brisk", {"replicas": 1}, "wpool")
    second = namespace.pod_running("slow")
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    namespace.finish_commands(second, "slow")
    status = namespace.wait_for_phase("slow", "Succeeded")
    assert (status["failures"], status["losses"]) == (0, 0)


def test_pool_and_jobs_report_an_image_that_cannot_be_pulled(namespace: Namespace) -> None:
    namespace.apply(pool("typo", image="workron.invalid/no/such:image"), job("stuck", pool="typo"))
    condition = namespace.wait_for_condition("typo", "Stalled", "True", "ImagePullFailed")
    assert "workron.invalid/no/such:image" in condition["message"]
    namespace.wait_for_phase("stuck", "Waiting/ImagePullFailed")
    namespace.patch("typo", {"image": None}, "wpool")
    namespace.wait_for_phase("stuck", "Succeeded")


def test_jobs_wait_and_say_so_when_their_pool_does_not_exist(namespace: Namespace) -> None:
    namespace.apply(job("early", pool="missing"))
    status = namespace.wait_for_phase("early", "Waiting/PoolNotFound")
    assert "WorkerPool missing does not exist" in status["message"]
    namespace.apply(pool("missing"))
    namespace.wait_for_phase("early", "Succeeded")


def test_pool_and_jobs_report_a_quota_that_is_exceeded(namespace: Namespace) -> None:
    namespace.kubectl("create", "quota", "none", "--hard=pods=0")
    try:
        namespace.apply(pool("poor"), job("hopes", pool="poor"))
        condition = namespace.wait_for_condition("poor", "Stalled", "True", "QuotaExceeded")
        assert "none" in condition["message"]
        namespace.wait_for_phase("hopes", "Waiting/QuotaExceeded")
    finally:
        namespace.kubectl("delete", "quota", "none")
    namespace.wait_for_phase("hopes", "Succeeded")


def test_pool_scales_from_zero_with_its_first_job_and_back_when_it_is_idle(
    namespace: Namespace,
) -> None:
    namespace.apply(pool("scaled", slots=1, maxReplicas=3))
    wait_until(
        lambda: "desiredReplicas" in namespace.status("scaled", "wpool"), "the pool is reconciled"
    )
    assert namespace.pods("scaled") == []
    names = ("one", "two", "three")
    namespace.apply(*(job(name, command_waiting_for(name), pool="scaled") for name in names))
    for name in names:
        namespace.finish_commands(namespace.pod_running(name), name)
        namespace.wait_for_phase(name, "Succeeded")
    assert len(namespace.pods("scaled")) == len(names)
    wait_until(lambda: not namespace.pods("scaled"), "no worker is left", 2 * _IDLE_SECONDS)
    namespace.apply(job("again", pool="scaled"))
    namespace.wait_for_phase("again", "Succeeded")
