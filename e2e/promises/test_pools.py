"""A pool has as many workers as its queue needs, from none and to none.

Nothing that changes a pool costs a job that runs: neither fewer workers nor other ones. Only who
does not end within `drainTimeout` is handed back, which counts as no attempt.
"""

import pytest

from e2e.manifests import job, pool
from e2e.place import Place, until, waits_for

pytestmark = pytest.mark.timeout(900)

_IDLE_SECONDS = 300
"""For so long fewer workers have to be enough."""


@pytest.fixture(autouse=True)
def _nothing_is_left(place: Place) -> None:
    place.clear()


def test_workers_who_run_jobs_are_not_taken_from_them_by_a_smaller_pool(place: Place) -> None:
    names = ("one", "two", "three")
    place.apply(pool("many", slots=1, replicas=3))
    place.apply(*(job(name, waits_for(name), pool="many") for name in names))
    pods = {name: place.pod_of(name) for name in names}
    place.patch("many", {"replicas": 1}, "wpool")
    until(lambda: len(place.pods("many")) == 1, "two of three pods are about to go")
    assert set(place.phases().values()) == {"Running"}
    for name, pod in pods.items():
        place.let_go(pod, name)
        status = place.until(name, "Succeeded")
        assert (status["attempts"], status["losses"]) == (1, 0)
        assert status["worker"] == pod["metadata"]["uid"]


def test_workers_who_run_jobs_are_not_taken_from_them_by_a_new_template(place: Place) -> None:
    place.apply(pool("new", slots=1, replicas=2, env=[{"name": "EDITION", "value": "old"}]))
    busy = [job(name, f"{waits_for(name)}; echo $EDITION", pool="new") for name in ("one", "two")]
    place.apply(*busy)
    pods = {name: place.pod_of(name) for name in ("one", "two")}
    place.patch("new", {"env": [{"name": "EDITION", "value": "new"}]}, "wpool")
    place.apply(job("late", "echo $EDITION", pool="new"))
    assert place.until("late", "Succeeded")["outputTail"] == "new\n"
    assert {place.status(name)["phase"] for name in pods} == {"Running"}
    for name, pod in pods.items():
        place.let_go(pod, name)
        status = place.until(name, "Succeeded")
        assert (status["attempts"], status["outputTail"]) == (1, "old\n")
    until(lambda: len(place.all("rs")) == 1, "the old revision is gone")


def test_job_that_does_not_end_within_the_time_to_drain_is_handed_back(place: Place) -> None:
    place.apply(pool("brisk", slots=1, replicas=1, drainTimeout="3s"))
    place.apply(job("slow", waits_for("slow"), pool="brisk", maxAttempts=1, maxWorkerLosses=1))
    first = place.pod_of("slow")
    place.patch("brisk", {"replicas": 0}, "wpool")
    place.until("slow", "Queued")
    until(lambda: not place.all("pods"), "its pod is gone")
    place.patch("brisk", {"replicas": 1}, "wpool")
    second = place.pod_of("slow")
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    place.let_go(second, "slow")
    status = place.until("slow", "Succeeded")
    assert (status["failures"], status["losses"]) == (0, 0)


def test_image_that_cannot_be_pulled_is_told_by_its_pool_and_its_jobs(place: Place) -> None:
    place.apply(pool("typo", image="workron.invalid/no/such:image"), job("stuck", pool="typo"))
    told = place.condition("typo", "Stalled", "True", "ImagePullFailed")
    assert "workron.invalid/no/such:image" in told["message"]
    place.until("stuck", "Waiting/ImagePullFailed")
    place.patch("typo", {"image": None}, "wpool")
    place.until("stuck", "Succeeded")


def test_pool_that_does_not_exist_is_told_and_its_jobs_wait_for_it(place: Place) -> None:
    place.apply(job("early", pool="nobody"))
    status = place.until("early", "Waiting/PoolNotFound")
    assert "no WorkerPool nobody" in status["message"]
    place.apply(pool("nobody"))
    place.until("early", "Succeeded")


def test_quota_that_is_used_up_is_told(place: Place) -> None:
    place.kubectl("create", "quota", "none", "--hard=pods=0")
    try:
        place.apply(pool("poor"), job("hopes", pool="poor"))
        told = place.condition("poor", "Stalled", "True", "QuotaExceeded")
        assert "none" in told["message"]
        place.until("hopes", "Waiting/QuotaExceeded")
    finally:
        place.kubectl("delete", "quota", "none")
    place.until("hopes", "Succeeded")


def test_pool_comes_from_nothing_with_its_first_job_and_goes_back_when_it_is_idle(
    place: Place,
) -> None:
    place.apply(pool("tide", slots=1, maxReplicas=3))
    until(lambda: "desiredReplicas" in place.status("tide", "wpool"), "the pool is looked at")
    assert place.pods("tide") == []
    names = ("one", "two", "three")
    place.apply(*(job(name, waits_for(name), pool="tide") for name in names))
    for name in names:
        place.let_go(place.pod_of(name), name)
        place.until(name, "Succeeded")
    assert len(place.pods("tide")) == len(names)
    until(lambda: not place.pods("tide"), "no worker is left", 2 * _IDLE_SECONDS)
    place.apply(job("again", pool="tide"))
    place.until("again", "Succeeded")
