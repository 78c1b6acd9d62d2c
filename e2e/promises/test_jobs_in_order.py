"""Jobs run in the order that they ask for, whatever the order in which they come.

Diamonds, arrays, a thousand tasks in one object, branches that fail, retries, time limits,
priorities, and edits of what runs.
"""

import json
import time

import pytest

from e2e.manifests import job, pool, task, workflow
from e2e.place import Place, until, waits_for
from e2e.release import Release

pytestmark = pytest.mark.timeout(600)

_MANY = 1_000


def test_diamond_that_comes_in_reverse_runs_in_order(place: Place, release: Release) -> None:
    for name, upstreams in (("d", "bc"), ("c", "a"), ("b", "a")):
        place.apply(job(name, dependsOn=[{"name": one} for one in upstreams]))
        place.until(name, "Waiting/Upstream")
    place.apply(job("a"))
    for name in "abcd":
        place.until(name, "Succeeded")
    began = {name: _times(release, place, name)[0] for name in "abcd"}
    ended = {name: _times(release, place, name)[1] for name in "abcd"}
    assert ended["a"] <= min(began["b"], began["c"])
    assert max(ended["b"], ended["c"]) <= began["d"]


def test_workflow_of_a_thousand_tasks_is_one_object_with_few_writes(
    place: Place, release: Release
) -> None:
    tasks = [task("t0")] + [task(f"t{at}", f"t{at // 10}") for at in range(1, _MANY)]
    with place.watching("wflow", "thousand") as seen:
        place.apply(workflow("thousand", *tasks))
        began = time.monotonic()
        status = place.until("thousand", "Succeeded", "wflow", 300)
        took = time.monotonic() - began
    assert status["jobs"]["succeeded"] == status["jobs"]["total"] == _MANY
    # It is made, and written three times, and once for each count on the way, of which there is
    # none sooner than in five seconds.
    assert len(seen) <= 1 + 3 + took / 5 + 1, f"in {took:.0f} s: {seen}"
    late = f"""
        SELECT count(*) FROM workron.edge e
        JOIN workron.attempt up ON up.job = e.parent JOIN workron.attempt down ON down.job = e.child
        JOIN workron.job j ON j.id = e.child
        WHERE j.root = {place.stored("thousand")} AND down.started_at < up.finished_at
    """
    assert release.sql(late) == "0"


def test_array_runs_each_of_its_elements_once(place: Place) -> None:
    both = task("each", command="echo $WORKRON_INDEX $WORKRON_ITEM", items=["x", "y", "z"])
    after = task("after", count=3, dependsOn=[{"name": "each", "each": True}])
    place.apply(workflow("array", both, after))
    jobs = place.until("array", "Succeeded", "wflow")["jobs"]
    assert jobs["succeeded"] == jobs["total"] == 6


def test_branch_that_fails_is_skipped_down_and_others_go_on(place: Place) -> None:
    tasks = (
        task("bad", command="echo no >&2; exit 7", maxAttempts=1),
        task("below", "bad"),
        task("further", "below"),
        task("apart"),
        task("cleanup", dependsOn=[{"name": "below", "when": "Finished"}]),
    )
    place.apply(workflow("branch", *tasks))
    status = place.until("branch", "Failed", "wflow")
    counts = {name: status["jobs"][name] for name in ("succeeded", "failed", "skipped")}
    assert counts == {"succeeded": 2, "failed": 1, "skipped": 2}
    [failure] = status["firstFailures"]
    assert (failure["name"], failure["exitCode"]) == ("bad", 7)


def test_failure_is_tried_again_after_a_pause(place: Place, release: Release) -> None:
    again = "test $WORKRON_ATTEMPT = 3"
    place.apply(job("again", again, maxAttempts=3, backoff={"initial": "2s", "factor": 1}))
    status = place.until("again", "Succeeded")
    assert (status["attempts"], status["failures"]) == (3, 2)
    pauses = f"""
        SELECT min(extract(epoch FROM a.started_at - b.finished_at)) FROM workron.attempt a
        JOIN workron.attempt b ON b.job = a.job AND b.attempt = a.attempt - 1
        WHERE a.job = {place.stored("again")}
    """
    assert float(release.sql(pauses)) >= 1


def test_attempt_that_takes_too_long_is_ended_with_all_that_it_started(place: Place) -> None:
    command = "sleep 4711 & sleep 4711"
    place.apply(
        pool("timed", replicas=1), job("long", command, pool="timed", timeout="2s", maxAttempts=1)
    )
    assert place.until("long", "Failed")["reason"] == "Timeout"
    [pod] = place.pods("timed")
    assert "4711" not in place.commands(pod)


def test_more_urgent_job_is_run_first(place: Place, release: Release) -> None:
    place.apply(
        pool("narrow", slots=1, replicas=1), job("first", waits_for("first"), pool="narrow")
    )
    pod = place.pod_of("first")
    place.apply(job("low", pool="narrow"), job("high", pool="narrow", priority=5))
    for name in ("low", "high"):
        place.until(name, "Queued")
    place.let_go(pod, "first")
    for name in ("low", "high"):
        place.until(name, "Succeeded")
    assert _times(release, place, "high")[1] <= _times(release, place, "low")[0]


def test_job_is_suspended_resumed_and_cancelled_by_an_edit(place: Place) -> None:
    place.apply(pool("edited", replicas=1))
    place.apply(job("edited", "sleep 4712", pool="edited", suspend=True))
    place.until("edited", "Waiting/Suspended")
    place.patch("edited", {"suspend": False})
    pod = place.pod_of("edited")
    until(lambda: "4712" in place.commands(pod), "its command runs")
    place.patch("edited", {"cancel": True})
    assert place.until("edited", "Cancelled")["finishedAt"]
    until(lambda: "4712" not in place.commands(pod), "its command has ended")


def test_job_whose_object_is_deleted_is_ended(place: Place) -> None:
    place.apply(pool("deleted", replicas=1), job("deleted", "sleep 4713", pool="deleted"))
    pod = place.pod_of("deleted")
    until(lambda: "4713" in place.commands(pod), "its command runs")
    place.kubectl("delete", "wj", "deleted")
    until(lambda: "4713" not in place.commands(pod), "its command has ended")


def test_cycle_over_jobs_is_told_where_it_closes_and_all_else_goes_on(place: Place) -> None:
    place.apply(job("one", dependsOn=[{"name": "two"}]))
    place.until("one", "Waiting/Upstream")
    place.apply(job("two", dependsOn=[{"name": "one"}]), job("unrelated"))
    place.until("unrelated", "Succeeded")
    until(lambda: place.status("two").get("reason") == "CycleDetected", "the cycle is told")
    status = place.status("two")
    conditions = {one["type"]: one["status"] for one in status["conditions"]}
    assert conditions == {"Accepted": "False", "Stalled": "True"}
    assert "one -> two" in status["message"] or "two -> one" in status["message"]


def _times(release: Release, place: Place, name: str) -> tuple[float, float]:
    """Say when the last attempt of a job began and when it ended."""
    asked = f"""
        SELECT json_build_array(extract(epoch FROM started_at), extract(epoch FROM finished_at))
        FROM workron.attempt WHERE job = {place.stored(name)} ORDER BY attempt DESC LIMIT 1
    """
    began, ended = json.loads(release.sql(asked))
    return began, ended
