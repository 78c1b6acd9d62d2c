"""The operator on a real cluster: what a person does with kubectl is done, and told.

The controller and a worker run beside the cluster, over a real PostgreSQL.
"""

import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from e2e import cluster as clusters
from e2e.cluster import Cluster
from e2e.conftest import Start
from e2e.store import Call

# The first of them makes the cluster, and an environment.
pytestmark = pytest.mark.timeout(480)

_ROOT = pathlib.Path(__file__).parents[1]
_EXAMPLES = _ROOT / "examples"
_WRITES = re.compile(
    r'apiserver_request_total\{[^}]*resource="workronjobs"[^}]*subresource="status"[^}]*'
    r'verb="PATCH"[^}]*\} (\d+)'
)

Begin = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with clusters.running() as one:
        one.kubectl("apply", "-f", _ROOT / "crds")
        one.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        yield one


@pytest.fixture
def control(cluster: Cluster, start_operator: Start, database: str) -> Begin:
    """Start one more controller."""

    def begin() -> "subprocess.Popen[str]":
        return start_operator(*("controller", "--store", database), KUBECONFIG=str(cluster.config))

    return begin


@pytest.fixture
def first(control: Begin, start_operator: Start, database: str) -> "subprocess.Popen[str]":
    """The first controller."""
    start_operator("migrate", "--store", database).wait()
    return control()


@pytest.fixture
def system(
    cluster: Cluster, first: "subprocess.Popen[str]", start_operator: Start, database: str
) -> Cluster:
    """A cluster with a controller, and a worker beside it."""
    assert first.poll() is None
    start_operator("worker", "--store", database, "--slots", 8)
    cluster.kubectl("delete", "wj,wflow", "--all", "--wait")
    return cluster


def _job(name: str, /, **spec: Any) -> dict[str, Any]:
    return _object("Job", name, {"command": "true"} | spec)


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    about = {"apiVersion": "workron.dev/v1alpha1", "kind": kind}
    return {**about, "metadata": {"name": name}, "spec": spec}


def test_first_example_is_run_and_tells_of_itself(system: Cluster) -> None:
    system.kubectl("apply", "-f", _EXAMPLES / "job.yaml")
    system.kubectl("wait", "--for=condition=Complete", "wj/hello", "--timeout=60s")
    status = system.status("wj", "hello")
    assert (status["exitCode"], status["attempts"]) == (0, 1)
    assert status["outputTail"].startswith("Hello from Linux, attempt 1")
    line = system.kubectl("get", "wj", "hello", "--no-headers").split()
    assert line[:4] == ["hello", "Succeeded", "1", "default"]
    chosen = system.kubectl("get", "wj", "--field-selector", "status.phase=Succeeded", "-o", "name")
    assert chosen.split() == ["job.workron.dev/hello"]


def test_every_example_ends_as_it_says(system: Cluster) -> None:
    for name in ("diamond", "array", "etl", "failing"):
        system.kubectl("apply", "-f", _EXAMPLES / f"{name}.yaml")
    for name in ("top", "left", "right", "bottom"):
        assert system.until(name, "Succeeded")["finishedAt"]
    counts = {
        name: system.until(name, "Succeeded", "wflow")["jobs"]
        for name in ("squares", "etl", "release")
    }
    assert counts["squares"]["succeeded"] == counts["squares"]["total"] == 17
    assert (counts["release"]["failed"], counts["release"]["skipped"]) == (1, 1)
    [failure] = system.status("wflow", "release")["firstFailures"]
    assert (failure["name"], failure["exitCode"]) == ("deploy", 3)


def test_job_waits_for_one_that_comes_later(system: Cluster) -> None:
    system.apply(_job("down", dependsOn=[{"name": "up"}]))
    system.until("down", "Waiting/Upstream")
    system.apply(_job("up"))
    system.until("down", "Succeeded")


def test_job_is_suspended_resumed_and_cancelled_by_an_edit(
    system: Cluster, tmp_path: pathlib.Path
) -> None:
    mark = tmp_path / "runs"
    system.apply(_job("edited", suspend=True, command=f"touch {mark}; exec sleep 600"))
    system.until("edited", "Waiting/Suspended")
    _patch(system, "edited", '{"spec":{"suspend":false}}')
    system.until("edited", "Running")
    _until(mark.exists)
    assert _sleepers()
    _patch(system, "edited", '{"spec":{"cancel":true}}')
    assert system.until("edited", "Cancelled")["finishedAt"]
    _until(lambda: not _sleepers())


def test_job_whose_object_is_deleted_is_ended(system: Cluster, tmp_path: pathlib.Path) -> None:
    mark = tmp_path / "runs"
    system.apply(_job("deleted", command=f"touch {mark}; exec sleep 600"))
    _until(mark.exists)
    system.kubectl("delete", "wj", "deleted")
    _until(lambda: not _sleepers())


def test_object_that_is_deleted_while_nobody_looks_is_noticed(
    system: Cluster, first: "subprocess.Popen[str]", control: Begin, tmp_path: pathlib.Path
) -> None:
    mark = tmp_path / "runs"
    system.apply(_job("unseen", command=f"touch {mark}; exec sleep 600"))
    _until(mark.exists)
    first.send_signal(signal.SIGKILL)
    first.wait()
    system.kubectl("delete", "wj", "unseen")
    # What was stored in the last half minute may be newer than the list.
    time.sleep(31)
    control()
    _until(lambda: not _sleepers())


def test_cycle_over_jobs_is_told_where_it_closes(system: Cluster) -> None:
    system.apply(_job("one", dependsOn=[{"name": "two"}]))
    system.until("one", "Waiting/Upstream")
    system.apply(_job("two", dependsOn=[{"name": "one"}]), _job("apart"))
    system.until("apart", "Succeeded")
    _until(lambda: system.status("wj", "two").get("reason") == "CycleDetected")
    status = system.status("wj", "two")
    conditions = {one["type"]: one["status"] for one in status["conditions"]}
    assert conditions == {"Accepted": "False", "Stalled": "True"}
    assert "one -> two" in status["message"] or "two -> one" in status["message"]


def test_finished_object_leaves_after_its_time_and_its_history_stays(
    system: Cluster, call: Call, database: str
) -> None:
    system.apply(_job("brief", ttlSecondsAfterFinished=1))
    _until(lambda: "brief" not in system.phases())
    assert '"Succeeded"' in call("get", "brief", "-o", "json", "--store", database).stdout


def test_load_is_carried_through_the_death_of_a_controller_with_few_writes(
    system: Cluster, first: "subprocess.Popen[str]", control: Begin
) -> None:
    before = _writes(system)
    names = [f"load-{number}" for number in range(150)]
    successor = control()
    system.apply(*map(_job, names[:75]))
    first.send_signal(signal.SIGKILL)
    system.apply(*map(_job, names[75:]))
    _until(lambda: set(system.phases().values()) == {"Succeeded"})
    assert successor.poll() is None
    # One or another is seen while it runs, and the successor may repeat what was on its way.
    assert _writes(system) - before <= 2.5 * len(names)


def test_api_server_judges_the_corpus_as_the_models_do(cluster: Cluster) -> None:
    judged = subprocess.run(
        [sys.executable, "-m", "tests.corpus.judge", str(cluster.config)],
        cwd=_ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert judged.returncode == 0, judged.stdout + judged.stderr


def _patch(system: Cluster, name: str, patch: str) -> None:
    system.kubectl("patch", "wj", name, "--type", "merge", "-p", patch)


def _writes(system: Cluster) -> int:
    return sum(map(int, _WRITES.findall(system.kubectl("get", "--raw", "/metrics"))))


def _sleepers() -> list[str]:
    found = subprocess.run(
        ["pgrep", "-fx", "sleep 600"], capture_output=True, text=True, check=False
    )
    return found.stdout.split()


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.25)
