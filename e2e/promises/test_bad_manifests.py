"""What cannot be run is refused in words that help, or says so in a condition, and stops nobody.

The corpus of manifests is judged by the real API server, and what that lets in by the controller.
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
from e2e.place import Place, until
from e2e.release import HOME, Release
from tests.corpus import cases

pytestmark = [pytest.mark.timeout(600), pytest.mark.alone]

_ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def alone(release: Release) -> Iterator[pathlib.Path]:
    """The API server of a cluster in which nobody looks at what is made."""
    with release.without_controllers():
        yield release.cluster.config


def test_api_server_judges_the_corpus_as_the_models_do(alone: pathlib.Path) -> None:
    judged = subprocess.run(
        [sys.executable, "-m", "tests.corpus.judge", str(alone)],
        cwd=_ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_each_that_the_schema_lets_in_and_nobody_can_run_says_so(place: Place) -> None:
    told = cases.of("unaccepted")
    assert told
    for case in told:
        made = place.kubectl("create", "-f", "-", "-o", "name", given=case.text).strip()
        status = _refused(place, made)
        [accepted] = [one for one in status["conditions"] if one["type"] == "Stalled"]
        assert accepted["message"], case.name
        place.kubectl("delete", made)
    place.apply(job("good"))
    place.until("good", "Succeeded")


def test_what_is_as_large_as_it_may_be_is_run_or_refused_and_delays_nobody(place: Place) -> None:
    large = job("noted", "true")
    # Notes of a thing may have 256 KiB, and `apply` would write it into one of them again.
    large["metadata"]["annotations"] = {"note": "n" * (262_144 - len("note"))}
    place.kubectl("create", "-f", "-", given=json.dumps(large))
    env = [{"name": f"V{at}", "value": "x" * 10_000} for at in range(90)]
    place.kubectl("create", "-f", "-", given=json.dumps(job("heavy", env=env)))
    tasks = (task(f"t{at}", command=f"true # {'x' * 250}") for at in range(2_000))
    place.kubectl("create", "-f", "-", given=json.dumps(workflow("long", *tasks)))
    place.apply(job("beside"))
    place.until("beside", "Succeeded")
    place.until("noted", "Succeeded")
    place.until("long", "Succeeded", "wflow", 300)
    until(lambda: place.status("heavy").get("phase") in {"Succeeded", "Failed"}, "it has an end")


def test_characters_of_all_kinds_are_given_to_a_command_as_they_are(place: Place) -> None:
    odd = "e\u0301 \U0001f680 \u2028 \u00df"
    place.apply(job("odd", 'printf %s "$ODD"', env=[{"name": "ODD", "value": odd}]))
    assert place.until("odd", "Succeeded")["outputTail"].split() == odd.split()


def test_namespace_that_goes_takes_its_jobs_along_and_stops_nobody(
    place: Place, cluster: Cluster
) -> None:
    cluster.kubectl("create", "namespace", "short-lived")
    gone = Place(cluster, "short-lived")
    gone.apply(*(job(f"j{at}") for at in range(20)))
    cluster.kubectl("delete", "namespace", "short-lived", "--wait=false")
    place.apply(job("stays"))
    place.until("stays", "Succeeded")
    until(lambda: cluster.asked("get", "ns", "short-lived").returncode, "the namespace is gone")


def test_no_controller_was_ever_restarted_by_any_of_this(cluster: Cluster) -> None:
    label = "app.kubernetes.io/name=workron-controller"
    pods: list[dict[str, Any]] = cluster.read("pods", "-n", HOME, "-l", label)["items"]
    counts = [one["restartCount"] for pod in pods for one in pod["status"]["containerStatuses"]]
    assert counts == [0, 0]


def _refused(place: Place, name: str) -> dict[str, Any]:
    """Wait until an object says that nothing more will come of it, and give its status."""
    wanted = {"type": "Stalled", "status": "True"}

    def status() -> dict[str, Any]:
        found: dict[str, Any] = place.cluster.read("-n", place.namespace, name)
        return dict(found.get("status", {}))

    def says() -> bool:
        held = status().get("conditions", ())
        return any(wanted.items() <= one.items() for one in held)

    until(says, f"{name} says that it is stalled")
    return status()
