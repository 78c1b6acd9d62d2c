"""Objects as clients read them: in the shape of their manifests, with a status."""

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.scheduling.conftest import job, register_worker, submit, workflow
from workron.core.ids import ClaimId
from workron.core.manifest import load
from workron.core.model.status import JobStatus, WorkflowStatus
from workron.core.states import Reason, State
from workron.scheduling import job_view
from workron.store.api import Store
from workron.store.types import AttemptReport, Outcome, RunRow


async def _run(store: Store, name: str) -> RunRow:
    [run] = [run for run in await store.list_runs("default") if run.name == name]
    return run


async def _end_jobs(store: Store, **ends: Outcome) -> None:
    """End each ready job by its name."""
    session = await register_worker(store)
    claimed = await store.claim(session.key, [ClaimId(uuid.uuid4()) for _ in range(10)])
    ended = [(one, ends[one.name]) for one in claimed]
    reports = [
        AttemptReport(one.job, *one.ref, outcome, _REASONS[outcome], "m", 3, output=b"o\x1b[1mut")
        for one, outcome in ended
    ]
    await store.complete(session.key, reports)


_REASONS = {Outcome.SUCCEEDED: None, Outcome.FAILED: Reason.EXIT_CODE}


async def test_waiting_job_is_shown_as_its_manifest_with_a_status(store: Store) -> None:
    await submit(store, job("a", dependsOn=[{"name": "b"}], timeout="90s"))
    [shown] = await job_view.run_objects(store, await _run(store, "a"))
    assert shown["spec"]["timeout"] == "1m30s"
    assert shown["metadata"]["labels"] == {"team": "data"}
    assert shown["status"]["phase"] == "Waiting"
    assert [one["type"] for one in shown["status"]["conditions"]] == [
        "Accepted",
        "Reconciling",
    ]


@pytest.mark.parametrize(
    ("outcome", "types", "phase"),
    [
        (Outcome.SUCCEEDED, ["Accepted", "Complete"], "Succeeded"),
        (Outcome.FAILED, ["Accepted", "Failed", "Stalled"], "Failed"),
    ],
)
async def test_ended_job_is_shown_with_conditions_that_tools_understand(
    store: Store, outcome: Outcome, types: list[str], phase: str
) -> None:
    await submit(store, job("a"))
    await _end_jobs(store, a=outcome)
    [shown] = await job_view.run_objects(store, await _run(store, "a"))
    status = shown["status"]
    assert (status["phase"], status["exitCode"], status["attempts"]) == (phase, 3, 1)
    assert [one["type"] for one in status["conditions"]] == types
    assert status["outputTail"] == "out"


async def test_workflow_is_shown_with_its_counts_and_first_failures(store: Store) -> None:
    await submit(store, workflow("w", {"name": "a"}, {"name": "many", "count": 2}))
    await _end_jobs(store, a=Outcome.SUCCEEDED, many=Outcome.FAILED)
    while await store.propagate(100):
        pass
    status = (await job_view.run_objects(store, await _run(store, "w")))[0]["status"]
    assert status["jobs"]["total"] == 3
    assert status["jobs"]["done"] == 3
    assert (status["jobs"]["succeeded"], status["jobs"]["failed"]) == (1, 2)
    assert [(one["name"], one["index"]) for one in status["firstFailures"]] == [
        ("many", 0), ("many", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([{"name": "a"}], None),
        ([{"name": "bad", "allowFailure": True}], "1 failure allowed: bad"),
        (
            [
                {"name": "bad", "allowFailure": True},
                {"name": "worse", "count": 1, "maxFailures": 1},
            ],
            "2 failures allowed: bad, worse/0",
        ),
        (
            [{"name": "bad", "count": 7, "maxFailures": "100%"}],
            "7 failures allowed: bad/0, bad/1, bad/2, bad/3, bad/4 and 2 more",
        ),
    ],
)
async def test_allowed_failures_are_named_when_the_workflow_succeeded(
    store: Store, tasks: list[dict[str, Any]], message: str | None
) -> None:
    await submit(store, workflow("w", *tasks))
    await _end_jobs(store, a=Outcome.SUCCEEDED, bad=Outcome.FAILED, worse=Outcome.FAILED)
    while await store.propagate(100):
        pass
    run = await _run(store, "w")
    status = (await job_view.run_objects(store, run))[0]["status"]
    assert (status["phase"], status.get("message")) == ("Succeeded", message)
    assert status["conditions"][1].get("message", "") == (message or "")
    [row] = await store.get_jobs([run.run])
    assert await job_view.read_allowed_failures(store, row) == message


async def test_no_failure_is_called_allowed_when_the_workflow_failed(store: Store) -> None:
    await submit(store, workflow("w", {"name": "bad", "allowFailure": True}, {"name": "worse"}))
    await _end_jobs(store, bad=Outcome.FAILED, worse=Outcome.FAILED)
    while await store.propagate(100):
        pass
    run = await _run(store, "w")
    status = (await job_view.run_objects(store, run))[0]["status"]
    assert (status["phase"], status.get("message")) == ("Failed", None)
    [row] = await store.get_jobs([run.run])
    assert await job_view.read_allowed_failures(store, row) is None


async def test_jobs_of_a_workflow_have_names_labels_and_lasting_uids(store: Store) -> None:
    await submit(store, workflow("w", {"name": "a"}, {"name": "many", "items": ["x"]}))
    run = await _run(store, "w")
    first, again = await job_view.run_objects(store, run), await job_view.run_objects(store, run)
    assert [one["metadata"]["name"] for one in first] == ["w", "w.a", "w.many.0"]
    assert first[2]["metadata"]["labels"] == {
        "workron.dev/workflow": "w", "workron.dev/task": "many", "workron.dev/index": "0",
    }  # fmt: skip
    uids = [one["metadata"]["uid"] for one in first]
    assert uids == [one["metadata"]["uid"] for one in again]
    assert len(set(uids)) == 3


async def test_object_can_be_submitted_again(store: Store) -> None:
    await submit(store, workflow("w", {"name": "a"}, {"name": "many", "items": ["x", "y"]}))
    await submit(store, job("j", backoff={"initial": "2s"}))
    objects: list[Any] = []
    for name in ("w", "j"):
        objects += await job_view.run_objects(store, await _run(store, name))
    text = "---\n".join(json.dumps(one) + "\n" for one in objects)
    manifests = load.load([load.ManifestSource("all", text.encode())])
    assert [one.resource.metadata.name for one in manifests] == [
        "w", "w.a", "w.many.0", "w.many.1", "j",
    ]  # fmt: skip


async def test_every_status_conforms_to_the_models(store: Store) -> None:
    await submit(store, workflow("w", {"name": "a"}))
    flow, task = await job_view.run_objects(store, await _run(store, "w"))
    assert WorkflowStatus.parse(flow["status"]).phase is State.QUEUED
    assert JobStatus.parse(task["status"]).phase is State.QUEUED
    created = datetime.fromisoformat(task["metadata"]["creationTimestamp"])
    assert created == datetime(2026, 1, 1, tzinfo=UTC)
