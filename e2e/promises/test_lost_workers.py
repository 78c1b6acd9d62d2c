"""A worker that is lost, or only looks so, does no harm: its jobs are run again and end once.

Its node goes, or stands still and comes back; its pod is deleted by force; it is cut from the
database; its runner is killed. A lease is ten seconds here, and lost ones are looked for every two.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from e2e.manifests import job, pool
from e2e.node import node_of
from e2e.place import Place, until, waits_for
from e2e.release import Release

pytestmark = [pytest.mark.timeout(600), pytest.mark.alone]

_LEASE_SECONDS = 10
_LOOK_SECONDS = 2
_MARGIN_SECONDS = 8
"""For kubectl, and for two cores that a whole cluster shares."""
_APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"workron.dev/pool": "two"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}


@pytest.fixture(autouse=True)
def _fresh(place: Place) -> Iterator[None]:
    """A pool of two workers with one slot each, on a node each."""
    place.clear()
    works = {"workron-e2e": "jobs"}
    place.apply(pool("two", slots=1, replicas=2, nodeSelector=works, affinity=_APART))
    ready = ("--for=jsonpath={.status.readyReplicas}=2", "wpool/two", "--timeout=120s")
    place.kubectl("wait", *ready)
    yield
    place.cluster.kubectl("uncordon", "-l", "workron-e2e=jobs")


def test_job_of_a_pod_that_is_deleted_by_force_is_run_again(place: Place, release: Release) -> None:
    pod = _begun(place, "lost")
    began = time.time()
    place.kubectl("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
    other = _begun_again(place, "lost", pod)
    assert _lost_at(release, place, "lost") - began <= (
        _LEASE_SECONDS + _LOOK_SECONDS + _MARGIN_SECONDS
    )
    _end_once(place, release, "lost", other)


def test_job_of_a_node_that_is_drained_is_let_end_there(place: Place) -> None:
    pod = _begun(place, "drained")
    node = node_of(pod).name
    place.kubectl("cordon", node)
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=1s")
    place.asked("drain", node, *options)
    gone = "metadata.name=" + pod["metadata"]["name"]
    [leaving] = place.all("pods", "--field-selector", gone)
    assert "deletionTimestamp" in leaving["metadata"]
    place.let_go(pod, "drained")
    status = place.until("drained", "Succeeded")
    assert (status["attempts"], status["worker"]) == (1, pod["metadata"]["uid"])
    place.kubectl("drain", node, *options[:2], "--timeout=60s")


def test_node_that_stands_still_past_the_lease_and_comes_back_does_no_harm(
    place: Place, release: Release
) -> None:
    pod = _begun(place, "still")
    with node_of(pod).paused():
        other = _begun_again(place, "still", pod)
        place.let_go(other, "still")
        place.until("still", "Succeeded")
    back = time.monotonic()
    until(lambda: "test -e /tmp/still" not in place.commands(pod), "the old attempt is ended")
    assert time.monotonic() - back <= 2 * _MARGIN_SECONDS
    _end_once(place, release, "still", None)
    # It takes jobs again, which it could not in the name of the session that it had.
    names = ("next-one", "next-two")
    place.apply(*(job(name, waits_for(name), pool="two") for name in names))
    workers = {place.pod_of(name)["metadata"]["uid"] for name in names}
    assert workers == {one["metadata"]["uid"] for one in place.pods("two")}


def test_command_of_a_worker_that_is_cut_from_the_database_is_killed(
    place: Place, release: Release
) -> None:
    pod = _begun(place, "cut")
    with node_of(pod).cut_from_database(pod):
        began = time.monotonic()
        until(lambda: "test -e /tmp/cut" not in place.commands(pod), "its command is killed")
        assert time.monotonic() - began <= _LEASE_SECONDS + _MARGIN_SECONDS
        other = _begun_again(place, "cut", pod)
    _end_once(place, release, "cut", other)


def test_attempts_of_a_runner_that_is_killed_are_lost_together_and_none_ends_twice(
    place: Place, release: Release
) -> None:
    names = ["a", "b", "c"]
    place.apply(pool("wide", slots=4, replicas=1))
    place.apply(*(job(name, waits_for(name), pool="wide") for name in names))
    pods = [place.pod_of(name) for name in names]
    assert len({pod["metadata"]["uid"] for pod in pods}) == 1
    node_of(pods[0]).kill(pods[0], "runner")
    # Nobody knows which of them it was, so each is tried by itself.
    for name in names:
        until(partial(_is_tried_again, place, name), "it is tried again")
        assert [one for one, phase in place.phases().items() if phase == "Running"] == [name]
        # That is the runner's loss, and not one that a job has only so many of.
        _end_once(place, release, name, pods[0], losses=0)
    lost = [_lost_at(release, place, name) for name in names]
    assert max(lost) - min(lost) <= 1


def _begun(place: Place, name: str) -> dict[str, Any]:
    place.apply(job(name, waits_for(name), pool="two"))
    pod = place.pod_of(name)
    until(lambda: waits_for(name) in place.commands(pod), "its command runs")
    return pod


def _begun_again(place: Place, name: str, before: dict[str, Any]) -> dict[str, Any]:
    """Wait until another worker runs it, and give its pod."""
    old = before["metadata"]["uid"]

    def elsewhere() -> bool:
        status = place.status(name)
        return status.get("phase") == "Running" and status.get("worker") != old

    until(elsewhere, "another worker runs it")
    return place.pod_of(name)


def _is_tried_again(place: Place, name: str) -> bool:
    status = place.status(name)
    return (status.get("phase"), status.get("attempts")) == ("Running", 2)


def _end_once(
    place: Place, release: Release, name: str, pod: dict[str, Any] | None, losses: int = 1
) -> None:
    """Let a job end, and see that of two attempts one was lost and one has ended it."""
    if pod is not None:
        place.let_go(pod, name)
    status = place.until(name, "Succeeded")
    assert (status["attempts"], status["losses"]) == (2, losses)
    asked = f"SELECT string_agg(outcome::text, ' ' ORDER BY attempt) FROM {_attempts(place, name)}"
    assert release.sql(asked) == "Lost Succeeded"


def _lost_at(release: Release, place: Place, name: str) -> float:
    asked = f"SELECT extract(epoch FROM finished_at) FROM {_attempts(place, name)}"
    return float(release.sql(f"{asked} AND outcome = 'Lost'"))


def _attempts(place: Place, name: str) -> str:
    return f"workron.attempt WHERE job = {place.stored(name)}"
