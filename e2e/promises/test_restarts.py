"""No job is lost or ends twice when a part of the system itself fails and comes back.

The tests kill the controllers, their leader and the database, and freeze the API server, while jobs
run.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.manifests import job, pool
from e2e.namespace import Namespace, command_waiting_for, wait_until
from e2e.node import Node, node_of
from e2e.release import RELEASE_NAMESPACE, Release

pytestmark = [pytest.mark.timeout(900), pytest.mark.alone]

_MANY = 200
_FAILOVER_SECONDS = 15
_MARGIN_SECONDS = 5
"""For kubectl, on a machine with two cores for the whole cluster."""
_PAUSE_SECONDS = 60
_RESYNC_GRACE_SECONDS = 31
"""A resync does not treat objects as deleted that were stored in the last half minute."""


@pytest.fixture(autouse=True)
def _workers(namespace: Namespace, release: Release) -> Iterator[None]:
    """A pool with two workers of eight slots."""
    namespace.clear()
    namespace.apply(pool("some", slots=8, replicas=2))
    ready = ("--for=jsonpath={.status.readyReplicas}=2", "wpool/some", "--timeout=120s")
    namespace.kubectl("wait", *ready)
    yield
    release.wait_for_rollout()


def test_jobs_in_every_state_end_once_when_all_controllers_are_killed(
    namespace: Namespace, release: Release
) -> None:
    first = [_job_of_some_kind(f"a{at}", at) for at in range(_MANY // 2)]
    then = [_job_of_some_kind(f"b{at}", at) for at in range(_MANY // 2)]
    namespace.apply(*first)
    controllers = _controllers(namespace)
    assert len(controllers) == 2
    for pod in controllers:
        node_of(pod).kill(pod, "controller")
    namespace.apply(*then)
    wait_until(lambda: _ended(namespace) == _MANY, "every status has an end", 300)
    phases = namespace.phases()
    for one in (*first, *then):
        wanted = "Failed" if one["spec"]["command"] == "exit 1" else "Succeeded"
        assert phases[one["metadata"]["name"]] == wanted
    assert _ends(release, namespace) == _MANY


def test_a_new_leader_is_elected_within_15_seconds_when_the_leader_is_killed(
    namespace: Namespace,
) -> None:
    leader, _ = _leader(namespace)
    [pod] = [one for one in _controllers(namespace) if one["metadata"]["name"] == leader]
    node_of(pod).kill(pod, "controller")
    began = time.monotonic()
    # The killed leader renews nothing, so a later renewal comes from a new process.
    last = _leader(namespace)
    wait_until(lambda: _leader(namespace) != last, "a controller leads")
    assert time.monotonic() - began <= _FAILOVER_SECONDS + _MARGIN_SECONDS
    namespace.apply(job("after", pool="some"))
    namespace.wait_for_phase("after", "Succeeded")


def test_jobs_retries_and_reaping_continue_while_the_api_server_is_frozen(
    namespace: Namespace, release: Release
) -> None:
    again = {"maxAttempts": 2, "backoff": {"initial": "20s", "factor": 1}}
    namespace.apply(
        job("again", "test $WORKRON_ATTEMPT = 2", pool="some", **again),
        job("lost", "test $WORKRON_ATTEMPT = 2 || sleep 600", pool="some"),
        job("long", "sleep 30", pool="some"),
    )
    wait_until(lambda: namespace.status("again").get("failures") == 1, "it has failed once")
    pod = namespace.pod_running("lost")
    plane = Node(_controllers(namespace)[0]["spec"]["nodeName"])
    began = time.time()
    with plane.without_api_server():
        node_of(pod).kill(pod, "runner")
        time.sleep(_PAUSE_SECONDS)
        ended = time.time()
    wait_until(
        lambda: namespace.cluster.try_kubectl("get", "--raw", "/readyz").returncode == 0,
        "the API server answers",
    )
    for name in ("again", "lost", "long"):
        namespace.wait_for_phase(name, "Succeeded")
        assert began < _finished(release, namespace, name) < ended, (
            f"{name} ended while the API server was frozen"
        )


def test_jobs_continue_when_the_database_is_killed_and_comes_back(
    namespace: Namespace, release: Release
) -> None:
    names = [f"on-{at}" for at in range(8)]
    namespace.apply(*(job(name, command_waiting_for(name), pool="some") for name in names))
    pods = {name: namespace.pod_running(name) for name in names}
    namespace.apply(
        *(job(f"queued-{at}", pool="some", dependsOn=[{"name": "on-0"}]) for at in range(8))
    )
    database = namespace.cluster.get_json("pod", "workron-database-0", "-n", RELEASE_NAMESPACE)
    node_of(database).kill(database, "postgres")
    namespace.apply(job("meanwhile", pool="some"))
    wait_until(lambda: "meanwhile" in namespace.phases(), "the object exists")
    namespace.wait_for_phase("meanwhile", "Succeeded")
    for name, pod in pods.items():
        namespace.finish_commands(pod, name)
    for name in (*names, *(f"queued-{at}" for at in range(8))):
        status = namespace.wait_for_phase(name, "Succeeded")
        assert (status["attempts"], status["losses"]) == (1, 0)
    assert _ends(release, namespace) == 17


def test_command_is_killed_when_its_object_was_deleted_while_no_controller_ran(
    namespace: Namespace, release: Release
) -> None:
    namespace.apply(job("unobserved", "sleep 4714", pool="some"))
    pod = namespace.pod_running("unobserved")
    wait_until(lambda: "4714" in namespace.running_commands(pod), "the command runs")
    time.sleep(_RESYNC_GRACE_SECONDS)
    with release.controllers_stopped():
        namespace.kubectl("delete", "wj", "unobserved")
        assert "4714" in namespace.running_commands(pod)
    wait_until(lambda: "4714" not in namespace.running_commands(pod), "the command has ended")


def _job_of_some_kind(name: str, at: int) -> dict[str, Any]:
    """Return one of several kinds: it waits, runs for a while, fails, is retried, or just ends."""
    specs: tuple[dict[str, Any], ...] = (
        {"dependsOn": [{"name": f"{name[0]}{at - 1}"}]},
        {"command": "sleep 3"},
        {"command": "exit 1", "maxAttempts": 1},
        {"command": "test $WORKRON_ATTEMPT = 2", "backoff": {"initial": "1s"}},
        {},
    )
    spec = specs[at % len(specs)] if at else {}
    return job(name, **{"pool": "some", **spec})


def _controllers(namespace: Namespace) -> list[dict[str, Any]]:
    label = "app.kubernetes.io/name=workron-controller"
    found: list[dict[str, Any]] = namespace.cluster.get_json(
        "pods", "-n", RELEASE_NAMESPACE, "-l", label
    )["items"]
    return [one for one in found if one["status"]["phase"] == "Running"]


def _leader(namespace: Namespace) -> tuple[str, str]:
    """Return the leader, and when it last renewed its lease."""
    path = "jsonpath={.spec.holderIdentity} {.spec.renewTime}"
    output = namespace.cluster.kubectl(
        "get", "lease", "workron-controller", "-n", RELEASE_NAMESPACE, "-o", path
    )
    holder, renewed = output.split()
    return holder, renewed


def _ended(namespace: Namespace) -> int:
    return sum(phase in {"Succeeded", "Failed"} for phase in namespace.phases().values())


def _ends(release: Release, namespace: Namespace) -> int:
    """Count the attempts that ended a job, over all Jobs of the namespace."""
    uids = json.dumps([one["metadata"]["uid"] for one in namespace.objects("wj")]).replace(
        '"', "'"
    )[1:-1]
    return int(
        release.sql(f"""
            SELECT count(*) FROM workron.attempt a JOIN workron.run r ON r.id = a.job
            JOIN workron.done d ON d.job = a.job
            WHERE a.outcome IN ('Succeeded', 'Failed') AND r.uid IN ({uids})
        """)
    )


def _finished(release: Release, namespace: Namespace, name: str) -> float:
    query = "SELECT extract(epoch FROM finished_at) FROM workron.done WHERE job = "
    return float(release.sql(query + namespace.run_id_sql(name)))
