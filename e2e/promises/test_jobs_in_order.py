"""Jobs run in the order of their dependencies, in whatever order they are applied.

Diamonds, arrays, a thousand tasks in one object, failing branches, retries, timeouts, priorities,
and edits of running jobs.
"""

import json
import time

import pytest

from e2e.manifests import job, pool, task, workflow
from e2e.namespace import Namespace, command_waiting_for, wait_until
from e2e.release import Release

pytestmark = pytest.mark.timeout(600)

_MANY = 1_000


def test_diamond_runs_in_order_when_applied_in_reverse(
    namespace: Namespace, release: Release
) -> None:
    for name, upstreams in (("d", "bc"), ("c", "a"), ("b", "a")):
        namespace.apply(job(name, dependsOn=[{"name": one} for one in upstreams]))
        namespace.wait_for_phase(name, "Waiting/Upstream")
    namespace.apply(job("a"))
    for name in "abcd":
        namespace.wait_for_phase(name, "Succeeded")
    began = {name: _times(release, namespace, name)[0] for name in "abcd"}
    ended = {name: _times(release, namespace, name)[1] for name in "abcd"}
    assert ended["a"] <= min(began["b"], began["c"])
    assert max(ended["b"], ended["c"]) <= began["d"]


def test_status_is_written_rarely_when_a_workflow_has_a_thousand_tasks(
    namespace: Namespace, release: Release
) -> None:
    tasks = [task("t0")] + [task(f"t{at}", f"t{at // 10}") for at in range(1, _MANY)]
    with namespace.watch_phases("wflow", "thousand") as seen:
        namespace.apply(workflow("thousand", *tasks))
        began = time.monotonic()
        status = namespace.wait_for_phase("thousand", "Succeeded", "wflow", 300)
        took = time.monotonic() - began
    assert status["jobs"]["succeeded"] == status["jobs"]["total"] == _MANY
    # One creation, three writes, and one write for each progress count; counts are written at most
    # every five seconds.
    assert len(seen) <= 1 + 3 + took / 5 + 1, f"in {took:.0f} s: {seen}"
    late = f"""
        SELECT count(*) FROM workron.edge e
        JOIN workron.attempt up ON up.job = e.upstream
        JOIN workron.attempt down ON down.job = e.downstream
        JOIN workron.job j ON j.id = e.downstream
        WHERE j.run = {namespace.run_id_sql("thousand")} AND down.started_at < up.finished_at
    """
    assert release.sql(late) == "0"


def test_array_runs_each_element_once(namespace: Namespace) -> None:
    both = task("each", command="echo $WORKRON_INDEX $WORKRON_ITEM", items=["x", "y", "z"])
    after = task("after", count=3, dependsOn=[{"name": "each", "each": True}])
    namespace.apply(workflow("array", both, after))
    jobs = namespace.wait_for_phase("array", "Succeeded", "wflow")["jobs"]
    assert jobs["succeeded"] == jobs["total"] == 6


def test_downstream_jobs_are_skipped_and_others_run_when_a_branch_fails(
    namespace: Namespace,
) -> None:
    tasks = (
        task("bad", command="echo no >&2; exit 7", maxAttempts=1),
        task("below", "bad"),
        task("further", "below"),
        task("apart"),
        task("cleanup", dependsOn=[{"name": "below", "when": "Finished"}]),
    )
    namespace.apply(workflow("branch", *tasks))
    status = namespace.wait_for_phase("branch", "Failed", "wflow")
    counts = {name: status["jobs"][name] for name in ("succeeded", "failed", "skipped")}
    assert counts == {"succeeded": 2, "failed": 1, "skipped": 2}
    [failure] = status["firstFailures"]
    assert (failure["name"], failure["exitCode"]) == ("bad", 7)


def test_failed_job_is_retried_after_its_backoff(namespace: Namespace, release: Release) -> None:
    again = "test $WORKRON_ATTEMPT = 3"
    namespace.apply(job("again", again, maxAttempts=3, backoff={"initial": "2s", "factor": 1}))
    status = namespace.wait_for_phase("again", "Succeeded")
    assert (status["attempts"], status["failures"]) == (3, 2)
    pauses = f"""
        SELECT min(extract(epoch FROM a.started_at - b.finished_at)) FROM workron.attempt a
        JOIN workron.attempt b ON b.job = a.job AND b.attempt = a.attempt - 1
        WHERE a.job = {namespace.run_id_sql("again")}
    """
    assert float(release.sql(pauses)) >= 1


def test_all_processes_of_an_attempt_are_killed_when_it_times_out(
    namespace: Namespace,
) -> None:
    command = "sleep 4711 & sleep 4711"
    namespace.apply(
        pool("timed", replicas=1), job("long", command, pool="timed", timeout="2s", maxAttempts=1)
    )
    assert namespace.wait_for_phase("long", "Failed")["reason"] == "Timeout"
    [pod] = namespace.pods("timed")
    assert "4711" not in namespace.running_commands(pod)


def test_job_of_higher_priority_runs_first(namespace: Namespace, release: Release) -> None:
    namespace.apply(
        pool("narrow", slots=1, replicas=1),
        job("first", command_waiting_for("first"), pool="narrow"),
    )
    pod = namespace.pod_running("first")
    namespace.apply(job("low", pool="narrow"), job("high", pool="narrow", priority=5))
    for name in ("low", "high"):
        namespace.wait_for_phase(name, "Queued")
    namespace.finish_commands(pod, "first")
    for name in ("low", "high"):
        namespace.wait_for_phase(name, "Succeeded")
    assert _times(release, namespace, "high")[1] <= _times(release, namespace, "low")[0]


def test_job_is_resumed_and_cancelled_when_its_spec_is_edited(namespace: Namespace) -> None:
    namespace.apply(pool("edited", replicas=1))
    namespace.apply(job("edited", "sleep 4712", pool="edited", suspend=True))
    namespace.wait_for_phase("edited", "Waiting/Suspended")
    namespace.patch("edited", {"suspend": False})
    pod = namespace.pod_running("edited")
    wait_until(lambda: "4712" in namespace.running_commands(pod), "its command runs")
    namespace.patch("edited", {"cancel": True})
    assert namespace.wait_for_phase("edited", "Cancelled")["finishedAt"]
    wait_until(lambda: "4712" not in namespace.running_commands(pod), "its command has ended")


def test_command_is_killed_when_its_object_is_deleted(namespace: Namespace) -> None:
    namespace.apply(pool("deleted", replicas=1), job("deleted", "sleep 4713", pool="deleted"))
    pod = namespace.pod_running("deleted")
    wait_until(lambda: "4713" in namespace.running_commands(pod), "its command runs")
    namespace.kubectl("delete", "wj", "deleted")
    wait_until(lambda: "4713" not in namespace.running_commands(pod), "its command has ended")


def test_finally_runs_when_its_workflow_is_cancelled_or_deleted(
    namespace: Namespace, release: Release
) -> None:
    namespace.apply(pool("last", replicas=1, slots=4))
    first = task("first", command="sleep 4714", pool="last")
    last = task("last", command='test "$WORKRON_RUN_STATE" = Cancelled', pool="last")
    for name in ("cancelled", "removed"):
        namespace.apply(workflow(name, first, **{"finally": [last]}))
        namespace.wait_for_phase(name, "Running", "wflow")
    namespace.patch("cancelled", {"cancel": True}, "wflow")
    namespace.kubectl("delete", "wflow", "removed")
    queries = [namespace.ended_states_sql(name) for name in ("cancelled", "removed")]
    wait_until(
        lambda: {release.sql(one) for one in queries} == {"first:Cancelled last:Succeeded"},
        "finally of both has run",
    )
    namespace.wait_for_phase("cancelled", "Cancelled", "wflow")


def test_cycle_is_reported_and_other_jobs_run_when_jobs_depend_on_each_other(
    namespace: Namespace,
) -> None:
    namespace.apply(job("one", dependsOn=[{"name": "two"}]))
    namespace.wait_for_phase("one", "Waiting/Upstream")
    namespace.apply(job("two", dependsOn=[{"name": "one"}]), job("unrelated"))
    namespace.wait_for_phase("unrelated", "Succeeded")
    wait_until(
        lambda: namespace.status("two").get("reason") == "CycleDetected", "the cycle is reported"
    )
    status = namespace.status("two")
    conditions = {one["type"]: one["status"] for one in status["conditions"]}
    assert conditions == {"Accepted": "False", "Stalled": "True"}
    assert "one -> two" in status["message"] or "two -> one" in status["message"]


def _times(release: Release, namespace: Namespace, name: str) -> tuple[float, float]:
    """Return when the last attempt of a job started and finished."""
    query = f"""
        SELECT json_build_array(extract(epoch FROM started_at), extract(epoch FROM finished_at))
        FROM workron.attempt WHERE job = {namespace.run_id_sql(name)} ORDER BY attempt DESC LIMIT 1
    """
    began, ended = json.loads(release.sql(query))
    return began, ended
