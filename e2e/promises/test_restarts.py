"""Whatever of the system itself goes and comes back, no job is lost and none ends twice.

The controllers, their leader, the API server and the database are each taken away in mid-flight.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.manifests import job, pool
from e2e.node import Node, node_of
from e2e.place import Place, until, waits_for
from e2e.release import HOME, Release

pytestmark = [pytest.mark.timeout(900), pytest.mark.alone]

_MANY = 200
_TAKES_OVER_SECONDS = 15
_MARGIN_SECONDS = 5
"""For kubectl, and for two cores that a whole cluster shares."""
_PAUSE_SECONDS = 60
_NEW_SECONDS = 31
"""What was stored in the last half minute may be newer than a list, and is not missed yet."""


@pytest.fixture(autouse=True)
def _workers(place: Place, release: Release) -> Iterator[None]:
    """A pool with two workers of some slots."""
    place.clear()
    place.apply(pool("some", slots=8, replicas=2))
    ready = ("--for=jsonpath={.status.readyReplicas}=2", "wpool/some", "--timeout=120s")
    place.kubectl("wait", *ready)
    yield
    release.settle()


def test_hundreds_of_jobs_in_every_state_survive_the_death_of_all_controllers(
    place: Place, release: Release
) -> None:
    first = [_some(f"a{at}", at) for at in range(_MANY // 2)]
    then = [_some(f"b{at}", at) for at in range(_MANY // 2)]
    place.apply(*first)
    controllers = _controllers(place)
    assert len(controllers) == 2
    for pod in controllers:
        node_of(pod).kill(pod, "controller")
    place.apply(*then)
    until(lambda: _ended(place) == _MANY, "all have ended and say so", 300)
    phases = place.phases()
    for one in (*first, *then):
        wanted = "Failed" if one["spec"]["command"] == "exit 1" else "Succeeded"
        assert phases[one["metadata"]["name"]] == wanted
    assert _ends(release, place) == _MANY


def test_within_fifteen_seconds_of_a_leaders_death_somebody_leads(place: Place) -> None:
    leader, _ = _lead(place)
    [pod] = [one for one in _controllers(place) if one["metadata"]["name"] == leader]
    node_of(pod).kill(pod, "controller")
    began = time.monotonic()
    # The dead one renews nothing any more: who does is another one, or itself, begun anew.
    last = _lead(place)
    until(lambda: _lead(place) != last, "somebody leads")
    assert time.monotonic() - began <= _TAKES_OVER_SECONDS + _MARGIN_SECONDS
    place.apply(job("after", pool="some"))
    place.until("after", "Succeeded")


def test_workers_retries_and_reaps_go_on_while_the_api_server_stands_still(
    place: Place, release: Release
) -> None:
    again = {"maxAttempts": 2, "backoff": {"initial": "20s", "factor": 1}}
    place.apply(
        job("again", "test $WORKRON_ATTEMPT = 2", pool="some", **again),
        job("lost", "test $WORKRON_ATTEMPT = 2 || sleep 600", pool="some"),
        job("long", "sleep 30", pool="some"),
    )
    until(lambda: place.status("again").get("failures") == 1, "it has failed once")
    pod = place.pod_of("lost")
    plane = Node(_controllers(place)[0]["spec"]["nodeName"])
    began = time.time()
    with plane.without_api_server():
        node_of(pod).kill(pod, "runner")
        time.sleep(_PAUSE_SECONDS)
        ended = time.time()
    until(lambda: place.cluster.asked("get", "--raw", "/readyz").returncode == 0, "it answers")
    for name in ("again", "lost", "long"):
        place.until(name, "Succeeded")
        assert began < _finished(release, place, name) < ended, f"{name} ended in the meantime"


def test_jobs_go_on_when_the_database_was_killed_and_came_back(
    place: Place, release: Release
) -> None:
    names = [f"on-{at}" for at in range(8)]
    place.apply(*(job(name, waits_for(name), pool="some") for name in names))
    pods = {name: place.pod_of(name) for name in names}
    place.apply(
        *(job(f"queued-{at}", pool="some", dependsOn=[{"name": "on-0"}]) for at in range(8))
    )
    database = place.cluster.read("pod", "workron-database-0", "-n", HOME)
    node_of(database).kill(database, "postgres")
    place.apply(job("meanwhile", pool="some"))
    until(lambda: "meanwhile" in place.phases(), "it is there")
    place.until("meanwhile", "Succeeded")
    for name, pod in pods.items():
        place.let_go(pod, name)
    for name in (*names, *(f"queued-{at}" for at in range(8))):
        status = place.until(name, "Succeeded")
        assert (status["attempts"], status["losses"]) == (1, 0)
    assert _ends(release, place) == 17


def test_object_that_is_deleted_while_no_controller_looks_is_noticed(
    place: Place, release: Release
) -> None:
    place.apply(job("unseen", "sleep 4714", pool="some"))
    pod = place.pod_of("unseen")
    until(lambda: "4714" in place.commands(pod), "its command runs")
    time.sleep(_NEW_SECONDS)
    with release.without_controllers():
        place.kubectl("delete", "wj", "unseen")
        assert "4714" in place.commands(pod)
    until(lambda: "4714" not in place.commands(pod), "its command has ended")


def _some(name: str, at: int) -> dict[str, Any]:
    """One of several kinds: it waits, runs for some time, fails, is tried again, or just ends."""
    specs: tuple[dict[str, Any], ...] = (
        {"dependsOn": [{"name": f"{name[0]}{at - 1}"}]},
        {"command": "sleep 3"},
        {"command": "exit 1", "maxAttempts": 1},
        {"command": "test $WORKRON_ATTEMPT = 2", "backoff": {"initial": "1s"}},
        {},
    )
    spec = specs[at % len(specs)] if at else {}
    return job(name, **{"pool": "some", **spec})


def _controllers(place: Place) -> list[dict[str, Any]]:
    label = "app.kubernetes.io/name=workron-controller"
    found: list[dict[str, Any]] = place.cluster.read("pods", "-n", HOME, "-l", label)["items"]
    return [one for one in found if one["status"]["phase"] == "Running"]


def _lead(place: Place) -> tuple[str, str]:
    """Tell who leads, and when he last said so."""
    path = "jsonpath={.spec.holderIdentity} {.spec.renewTime}"
    told = place.cluster.kubectl("get", "lease", "workron-controller", "-n", HOME, "-o", path)
    who, when = told.split()
    return who, when


def _ended(place: Place) -> int:
    return sum(phase in {"Succeeded", "Failed"} for phase in place.phases().values())


def _ends(release: Release, place: Place) -> int:
    """Count the attempts that have ended a job, in all jobs that are there."""
    uids = json.dumps([one["metadata"]["uid"] for one in place.all("wj")]).replace('"', "'")[1:-1]
    return int(
        release.sql(f"""
            SELECT count(*) FROM workron.attempt a JOIN workron.root r ON r.id = a.job
            JOIN workron.done d ON d.job = a.job
            WHERE a.outcome IN ('Succeeded', 'Failed') AND r.uid IN ({uids})
        """)
    )


def _finished(release: Release, place: Place, name: str) -> float:
    asked = "SELECT extract(epoch FROM finished_at) FROM workron.done WHERE job = "
    return float(release.sql(asked + place.stored(name)))
