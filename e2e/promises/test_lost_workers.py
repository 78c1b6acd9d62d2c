"""Jobs of a lost worker, or of one that only looked lost, run again and end once.

Its node freezes and comes back; its pod is deleted by force; it is cut from the database; its
runner is killed. The pools here have a lease of ten seconds; the reaper runs every two.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from e2e.manifests import job, pool
from e2e.namespace import Namespace, command_waiting_for, wait_until
from e2e.node import node_of
from e2e.release import Release

pytestmark = [pytest.mark.timeout(600), pytest.mark.alone]

_LEASE_SECONDS = 10
_LEASE = f"{_LEASE_SECONDS}s"
_REAPER_SECONDS = 2
_MARGIN_SECONDS = 8
"""For kubectl, on a machine with two cores for the whole cluster."""
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
def _fresh_pool(namespace: Namespace) -> Iterator[None]:
    """A pool of two workers with one slot each, on different nodes."""
    namespace.clear()
    works = {"workron-e2e": "jobs"}
    namespace.apply(
        pool("two", slots=1, replicas=2, lease=_LEASE, nodeSelector=works, affinity=_APART)
    )
    ready = ("--for=jsonpath={.status.readyReplicas}=2", "wpool/two", "--timeout=120s")
    namespace.kubectl("wait", *ready)
    yield
    namespace.cluster.kubectl("uncordon", "-l", "workron-e2e=jobs")


def test_job_runs_again_when_its_pod_is_deleted_by_force(
    namespace: Namespace, release: Release
) -> None:
    pod = _start(namespace, "lost")
    began = time.time()
    namespace.kubectl("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
    other = _start_elsewhere(namespace, "lost", pod)
    assert _lost_at(release, namespace, "lost") - began <= (
        _LEASE_SECONDS + _REAPER_SECONDS + _MARGIN_SECONDS
    )
    _finish_once(namespace, release, "lost", other)


def test_job_finishes_on_its_node_when_the_node_is_drained(namespace: Namespace) -> None:
    pod = _start(namespace, "drained")
    node = node_of(pod).name
    namespace.kubectl("cordon", node)
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=1s")
    namespace.try_kubectl("drain", node, *options)
    selector = "metadata.name=" + pod["metadata"]["name"]
    [leaving] = namespace.objects("pods", "--field-selector", selector)
    assert "deletionTimestamp" in leaving["metadata"]
    namespace.finish_commands(pod, "drained")
    status = namespace.wait_for_phase("drained", "Succeeded")
    assert (status["attempts"], status["worker"]) == (1, pod["metadata"]["uid"])
    namespace.kubectl("drain", node, *options[:2], "--timeout=60s")


def test_job_ends_once_when_its_node_freezes_past_the_lease_and_comes_back(
    namespace: Namespace, release: Release
) -> None:
    pod = _start(namespace, "frozen")
    with node_of(pod).paused():
        other = _start_elsewhere(namespace, "frozen", pod)
        namespace.finish_commands(other, "frozen")
        namespace.wait_for_phase("frozen", "Succeeded")
    resumed = time.monotonic()
    wait_until(
        lambda: "test -e /tmp/frozen" not in namespace.running_commands(pod),
        "the old attempt is killed",
    )
    assert time.monotonic() - resumed <= 2 * _MARGIN_SECONDS
    _finish_once(namespace, release, "frozen", None)
    # It registered again, so it gets new jobs; the store rejects its old session.
    names = ("next-one", "next-two")
    namespace.apply(*(job(name, command_waiting_for(name), pool="two") for name in names))
    workers = {namespace.pod_running(name)["metadata"]["uid"] for name in names}
    assert workers == {one["metadata"]["uid"] for one in namespace.pods("two")}


def test_command_is_killed_when_its_worker_is_cut_from_the_database(
    namespace: Namespace, release: Release
) -> None:
    pod = _start(namespace, "cut")
    with node_of(pod).cut_from_database(pod):
        began = time.monotonic()
        wait_until(
            lambda: "test -e /tmp/cut" not in namespace.running_commands(pod),
            "the command is killed",
        )
        assert time.monotonic() - began <= _LEASE_SECONDS + _MARGIN_SECONDS
        other = _start_elsewhere(namespace, "cut", pod)
    _finish_once(namespace, release, "cut", other)


def test_attempts_are_lost_together_and_finish_once_when_their_runner_is_killed(
    namespace: Namespace, release: Release
) -> None:
    names = ["a", "b", "c"]
    namespace.apply(pool("wide", slots=4, replicas=1, lease=_LEASE))
    namespace.apply(*(job(name, command_waiting_for(name), pool="wide") for name in names))
    pods = [namespace.pod_running(name) for name in names]
    assert len({pod["metadata"]["uid"] for pod in pods}) == 1
    node_of(pods[0]).kill(pods[0], "runner")
    # Any of the three may have killed the runner, so each runs alone.
    for name in names:
        wait_until(partial(_is_second_attempt, namespace, name), "the job runs again")
        assert [one for one, phase in namespace.phases().items() if phase == "Running"] == [name]
        # A loss of the runner does not count toward maxWorkerLosses.
        _finish_once(namespace, release, name, pods[0], losses=0)
    lost = [_lost_at(release, namespace, name) for name in names]
    assert max(lost) - min(lost) <= 1


def _start(namespace: Namespace, name: str) -> dict[str, Any]:
    namespace.apply(job(name, command_waiting_for(name), pool="two"))
    pod = namespace.pod_running(name)
    wait_until(
        lambda: command_waiting_for(name) in namespace.running_commands(pod), "the command runs"
    )
    return pod


def _start_elsewhere(namespace: Namespace, name: str, before: dict[str, Any]) -> dict[str, Any]:
    """Wait until another worker runs the job, and return the pod of that worker."""
    old = before["metadata"]["uid"]

    def elsewhere() -> bool:
        status = namespace.status(name)
        return status.get("phase") == "Running" and status.get("worker") != old

    wait_until(elsewhere, "another worker runs the job")
    return namespace.pod_running(name)


def _is_second_attempt(namespace: Namespace, name: str) -> bool:
    status = namespace.status(name)
    return (status.get("phase"), status.get("attempts")) == ("Running", 2)


def _finish_once(
    namespace: Namespace, release: Release, name: str, pod: dict[str, Any] | None, losses: int = 1
) -> None:
    """Let a job end; of its two attempts one is lost and one has succeeded."""
    if pod is not None:
        namespace.finish_commands(pod, name)
    status = namespace.wait_for_phase(name, "Succeeded")
    assert (status["attempts"], status["losses"]) == (2, losses)
    query = (
        f"SELECT string_agg(outcome::text, ' ' ORDER BY attempt) FROM {_attempts(namespace, name)}"
    )
    assert release.sql(query) == "Lost Succeeded"


def _lost_at(release: Release, namespace: Namespace, name: str) -> float:
    query = f"SELECT extract(epoch FROM finished_at) FROM {_attempts(namespace, name)}"
    return float(release.sql(f"{query} AND outcome = 'Lost'"))


def _attempts(namespace: Namespace, name: str) -> str:
    return f"workron.attempt WHERE job = {namespace.run_id_sql(name)}"
