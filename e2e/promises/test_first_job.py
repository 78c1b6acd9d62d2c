"""A Job that is applied is run, and tells all of itself through kubectl.

What a person does on the first day: apply, wait, get, describe, explain, choose, and ask the
controller for the rest.
"""

import json
import pathlib

import pytest

from e2e.manifests import job
from e2e.place import Place, until
from e2e.release import Release

pytestmark = pytest.mark.timeout(300)

_EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_first_example_is_run_and_tells_of_itself(place: Place, release: Release) -> None:
    place.kubectl("apply", "-f", _EXAMPLES / "job.yaml")
    place.kubectl("wait", "--for=condition=Complete", "wj/hello", "--timeout=120s")
    status = place.status("hello")
    assert (status["phase"], status["exitCode"], status["attempts"]) == ("Succeeded", 0, 1)
    assert status["outputTail"].startswith("Hello from Linux, attempt 1")
    line = place.kubectl("get", "wj", "hello", "--no-headers").split()
    assert line[:4] == ["hello", "Succeeded", "1", "default"]
    described = place.kubectl("describe", "wj", "hello")
    assert "Output Tail" in described
    name = f"{place.namespace}/hello"
    assert release.workron("output", name).startswith("Hello from Linux")
    assert "Succeeded" in release.workron("describe", name)
    [item] = json.loads(release.workron("get", name, "-o", "json"))["items"]
    assert item["status"]["phase"] == "Succeeded"


def test_every_example_ends_as_it_says(place: Place) -> None:
    for name in ("diamond", "array", "etl", "failing"):
        place.kubectl("apply", "-f", _EXAMPLES / f"{name}.yaml")
    for name in ("top", "left", "right", "bottom"):
        assert place.until(name, "Succeeded")["finishedAt"]
    counts = {
        name: place.until(name, "Succeeded", "wflow")["jobs"]
        for name in ("squares", "etl", "release")
    }
    assert counts["squares"]["succeeded"] == counts["squares"]["total"] == 17
    assert (counts["release"]["failed"], counts["release"]["skipped"]) == (1, 1)
    [failure] = place.status("release", "wflow")["firstFailures"]
    assert (failure["name"], failure["exitCode"]) == ("deploy", 3)


def test_objects_are_chosen_by_phase_and_pool(place: Place) -> None:
    place.apply(job("fails", "exit 3", maxAttempts=1), job("waits", pool="elsewhere"))
    place.until("fails", "Failed")
    place.until("waits", "Waiting/PoolNotFound")
    by_phase = ("--field-selector", "status.phase=Failed", "-o", "name")
    assert place.kubectl("get", "wj", *by_phase).split() == ["job.workron.dev/fails"]
    by_pool = ("--field-selector", "spec.pool=elsewhere", "-o", "name")
    assert place.kubectl("get", "wj", *by_pool).split() == ["job.workron.dev/waits"]


def test_fields_are_explained_and_a_manifest_is_judged_before_it_is_applied(place: Place) -> None:
    said = place.kubectl("explain", "workronjobs.spec.dependsOn.when")
    assert "DESCRIPTION" in said
    good = json.dumps(job("only-tried"))
    assert "created (server dry run)" in place.kubectl(
        "apply", "--dry-run=server", "-f", "-", given=good
    )
    assert "only-tried" not in place.phases()
    refused = place.asked("apply", "--dry-run=server", "-f", "-", given=good.replace("true", ""))
    assert refused.returncode == 1
    assert "spec.command" in refused.stderr


def test_finished_object_leaves_after_its_time_and_its_history_stays(
    place: Place, release: Release
) -> None:
    place.apply(job("brief", ttlSecondsAfterFinished=1))
    until(lambda: "brief" not in place.phases(), "the object has left")
    assert "Succeeded" in release.workron("get", f"{place.namespace}/brief")


def test_job_that_is_run_again_has_another_name_or_was_deleted_before(place: Place) -> None:
    again = job("again", "echo again")
    for _ in range(2):
        place.apply(again)
        assert place.until("again", "Succeeded")["attempts"] == 1
        place.kubectl("delete", "wj", "again")
    again["metadata"] = {"generateName": "again-"}
    for _ in range(2):
        made = place.kubectl("create", "-f", "-", "-o", "name", given=json.dumps(again)).strip()
        place.until(made.rpartition("/")[2], "Succeeded")
