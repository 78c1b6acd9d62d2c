"""Explanations of why a job is in its current state."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.scheduling.explain import QueueContext, brief, explain, is_blocked
from workron.store.types import Blocker, JobRow, Signal

_ROW = JobRow(
    job=JobId(2), run=JobId(1), kind=Kind.JOB, name="load", index=None, group_id=None,
    state=State.WAITING, reason=Reason.UPSTREAM, message=None, priority=0, pool="default",
    attempts=0, failures=0, losses=0, exit_code=None, worker=None, due=None, started_at=None,
    finished_at=None,
)  # fmt: skip
_DUE = datetime(2026, 1, 1, 12, tzinfo=UTC)
_CONTEXT = QueueContext(_DUE, has_maintainer=True, pools={"default"})
_LATER = replace(_CONTEXT, now=_DUE + timedelta(seconds=6))


def _blocker(name: str, state: State | None, index: int | None = None) -> Blocker:
    return Blocker(None if state is None else JobId(9), Kind.JOB, name, index, "Succeeded", state)


_STATES: list[tuple[dict[str, Any], str]] = [
    (
        {"state": State.QUEUED, "reason": None},
        "is queued; waits for a free slot of a worker in pool 'default'",
    ),
    (
        {"reason": Reason.BACKOFF, "failures": 2, "due": _DUE},
        "failed 2 times; retries at 2026-01-01T12:00:00Z",
    ),
    (
        {"reason": Reason.BACKOFF, "failures": 1, "due": _DUE},
        "failed once; retries at 2026-01-01T12:00:00Z",
    ),
    (
        {"reason": Reason.SCHEDULED, "due": _DUE},
        "starts at 2026-01-01T12:00:00Z at the earliest (startAfter)",
    ),
    ({"reason": Reason.SUSPENDED}, "is suspended"),
    (
        {"reason": Reason.AWAITING_PROOF},
        "waits for proof that its lost attempt is dead (overlap: Forbid)",
    ),
    (
        {"state": State.RUNNING, "reason": None, "worker": "w", "attempts": 3},
        "runs on worker w, attempt 3",
    ),
    (
        {"state": State.RUNNING, "reason": None, "kind": Kind.ARRAY},
        "some of its jobs have not ended",
    ),
    ({"kind": Kind.WORKFLOW}, "none of its jobs has started"),
    ({"kind": Kind.WORKFLOW, "reason": Reason.SUSPENDED}, "is suspended"),
]


@pytest.mark.parametrize(("change", "words"), _STATES)
def test_every_state_is_explained(change: dict[str, Any], words: str) -> None:
    assert explain(replace(_ROW, **change), [], _CONTEXT) == [words]


_RETRY = replace(_ROW, reason=Reason.BACKOFF, failures=1, due=_DUE)
_NO_MAINTAINER = "no maintainer is running; it needs one: `workron maintain`"


def test_explanation_says_was_due_when_the_time_has_passed() -> None:
    was = "failed once; was due for a retry at 2026-01-01T12:00:00Z"
    assert explain(_RETRY, [], _LATER) == [was, "the maintainer is late"]
    assert explain(_RETRY, [], replace(_LATER, has_maintainer=False)) == [was, _NO_MAINTAINER]
    scheduled = replace(_RETRY, reason=Reason.SCHEDULED)
    assert explain(scheduled, [], _LATER)[0].startswith("was due to start at 2026-")


def test_explanation_asks_for_a_maintainer_when_none_is_running() -> None:
    assert explain(_RETRY, [], replace(_CONTEXT, has_maintainer=False))[1:] == [_NO_MAINTAINER]


def test_running_job_warns_of_lost_workers_when_no_maintainer_is_running() -> None:
    running = replace(_ROW, state=State.RUNNING, reason=None, worker="w", attempts=1)
    first, second = explain(running, [], replace(_CONTEXT, has_maintainer=False))
    assert first == "runs on worker w, attempt 1"
    assert "start one: `workron maintain` or `workron run` on this store" in second


def test_queued_job_names_its_pool_when_the_pool_has_no_worker() -> None:
    ready = replace(_ROW, state=State.QUEUED, reason=None, pool="bigg")
    assert explain(ready, [], _CONTEXT) == ["is queued; pool 'bigg' has no worker"]
    assert brief(ready, _CONTEXT) == "pool 'bigg' has no worker"
    assert brief(replace(ready, kind=Kind.WORKFLOW), _CONTEXT) == ""


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (Signal.CANCEL, "is being cancelled"),
        (Signal.EXPIRE, "is being stopped: its deadline has passed"),
        (Signal.SUSPEND, "will be suspended when this attempt ends"),
    ],
)
def test_signal_is_explained_before_it_takes_effect(mark: Signal, words: str) -> None:
    running = replace(_ROW, state=State.RUNNING, reason=None, worker="w", attempts=1)
    context = replace(_CONTEXT, signals={running.job: mark})
    assert explain(running, [], context) == [words, "runs on worker w, attempt 1"]
    assert brief(running, context) == words
    assert brief(replace(running, job=JobId(3)), context) == ""


def test_workflow_is_being_cancelled_when_one_of_its_jobs_is() -> None:
    flow = replace(_ROW, kind=Kind.WORKFLOW, state=State.RUNNING, reason=None)
    context = replace(_CONTEXT, signals={JobId(3): Signal.CANCEL})
    assert explain(flow, [], context) == ["is being cancelled", "some of its jobs have not ended"]
    assert brief(replace(flow, state=State.CANCELLED), context) == ""


def test_brief_names_the_due_time_when_it_has_passed() -> None:
    assert brief(_RETRY, _CONTEXT) == ""
    assert brief(_RETRY, _LATER) == "was due at 2026-01-01T12:00:00Z"
    assert brief(_RETRY, replace(_LATER, has_maintainer=False)).endswith("Z, no maintainer")


@pytest.mark.parametrize("reason", [None, Reason.TIMEOUT])
def test_explanation_is_empty_when_the_job_has_ended(reason: Reason | None) -> None:
    state = State.FAILED if reason else State.SUCCEEDED
    assert explain(replace(_ROW, state=state, reason=reason), [], _CONTEXT) == []


def test_job_is_blocked_only_when_it_waits_for_upstreams() -> None:
    assert is_blocked(_ROW)
    for change in ({"kind": Kind.WORKFLOW}, {"state": State.QUEUED}, {"reason": Reason.BACKOFF}):
        assert not is_blocked(replace(_ROW, **change))


def test_unfinished_upstreams_are_listed_and_ended_ones_counted() -> None:
    blockers = [_blocker("a", State.RUNNING), _blocker("b", None), _blocker("c", State.SUCCEEDED)]
    assert explain(_ROW, blockers, _CONTEXT) == [
        "waits for 2 of 3 upstreams:",
        "  a is Running; required: Succeeded",
        "  Job 'b' is not in the store yet; required: Succeeded",
    ]


def test_upstream_has_its_index_when_it_is_an_element() -> None:
    assert "  a/3 is Queued; required: Succeeded" in explain(
        _ROW, [_blocker("a", State.QUEUED, 3)], _CONTEXT
    )


def test_upstreams_are_cut_off_when_there_are_many() -> None:
    lines = explain(_ROW, [_blocker(f"a{n}", State.QUEUED) for n in range(1000)], _CONTEXT)
    assert lines[0] == "waits for 1,000 of 1,000 upstreams:"
    assert (len(lines), lines[-1]) == (12, "  and 990 more")
