"""An applied Job runs, and kubectl shows everything about it.

The first day of a user: apply, wait, get, describe, explain, select, and the CLI in the controller.
"""

import json
import pathlib

import pytest

from e2e.manifests import job
from e2e.namespace import Namespace, wait_until
from e2e.release import Release

pytestmark = pytest.mark.timeout(300)

_EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_first_example_runs_and_shows_its_status(namespace: Namespace, release: Release) -> None:
    namespace.kubectl("apply", "-f", _EXAMPLES / "job.yaml")
    namespace.kubectl("wait", "--for=condition=Complete", "wj/hello", "--timeout=120s")
    status = namespace.status("hello")
    assert (status["phase"], status["exitCode"], status["attempts"]) == ("Succeeded", 0, 1)
    assert status["outputTail"].startswith("Hello from Linux, attempt 1")
    line = namespace.kubectl("get", "wj", "hello", "--no-headers").split()
    assert line[:4] == ["hello", "Succeeded", "1", "default"]
    described = namespace.kubectl("describe", "wj", "hello")
    assert "Output Tail" in described
    name = f"{namespace.name}/hello"
    assert release.workron("output", name).startswith("Hello from Linux")
    assert "Succeeded" in release.workron("describe", name)
    [item] = json.loads(release.workron("get", name, "-o", "json"))["items"]
    assert item["status"]["phase"] == "Succeeded"


def test_every_example_ends_as_its_comments_say(namespace: Namespace) -> None:
    for name in ("diamond", "array", "etl", "failing"):
        namespace.kubectl("apply", "-f", _EXAMPLES / f"{name}.yaml")
    for name in ("top", "left", "right", "bottom"):
        assert namespace.wait_for_phase(name, "Succeeded")["finishedAt"]
    counts = {
        name: namespace.wait_for_phase(name, phase, "wflow")["jobs"]
        for name, phase in (("squares", "Succeeded"), ("etl", "Succeeded"), ("release", "Failed"))
    }
    assert counts["squares"]["succeeded"] == counts["squares"]["total"] == 17
    assert (counts["release"]["failed"], counts["release"]["skipped"]) == (1, 1)
    [failure] = namespace.status("release", "wflow")["firstFailures"]
    assert (failure["name"], failure["exitCode"]) == ("deploy", 3)


def test_field_selectors_select_by_phase_and_pool(namespace: Namespace) -> None:
    namespace.apply(job("fails", "exit 3", maxAttempts=1), job("waits", pool="elsewhere"))
    namespace.wait_for_phase("fails", "Failed")
    namespace.wait_for_phase("waits", "Waiting/PoolNotFound")
    by_phase = ("--field-selector", "status.phase=Failed", "-o", "name")
    assert namespace.kubectl("get", "wj", *by_phase).split() == ["job.workron.dev/fails"]
    by_pool = ("--field-selector", "spec.pool=elsewhere", "-o", "name")
    assert namespace.kubectl("get", "wj", *by_pool).split() == ["job.workron.dev/waits"]


def test_explain_and_server_dry_run_work(
    namespace: Namespace,
) -> None:
    result = namespace.kubectl("explain", "workronjobs.spec.dependsOn.when")
    assert "DESCRIPTION" in result
    good = json.dumps(job("only-tried"))
    assert "created (server dry run)" in namespace.kubectl(
        "apply", "--dry-run=server", "-f", "-", stdin=good
    )
    assert "only-tried" not in namespace.phases()
    refused = namespace.try_kubectl(
        "apply", "--dry-run=server", "-f", "-", stdin=good.replace("true", "")
    )
    assert refused.returncode == 1
    assert "spec.command" in refused.stderr


def test_history_remains_when_the_ttl_deletes_an_object(
    namespace: Namespace, release: Release
) -> None:
    namespace.apply(job("brief", ttlSecondsAfterFinished=1))
    wait_until(lambda: "brief" not in namespace.phases(), "the object is deleted")
    assert "Succeeded" in release.workron("get", f"{namespace.name}/brief")


def test_job_runs_again_when_it_is_deleted_or_has_a_generated_name(namespace: Namespace) -> None:
    again = job("again", "echo again")
    for _ in range(2):
        namespace.apply(again)
        assert namespace.wait_for_phase("again", "Succeeded")["attempts"] == 1
        namespace.kubectl("delete", "wj", "again")
    again["metadata"] = {"generateName": "again-"}
    for _ in range(2):
        made = namespace.kubectl("create", "-f", "-", "-o", "name", stdin=json.dumps(again)).strip()
        namespace.wait_for_phase(made.rpartition("/")[2], "Succeeded")
