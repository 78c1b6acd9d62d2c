"""Why a job is where it is, in words."""

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
_AROUND = QueueContext(_DUE, is_led=True, pools={"default"})
_LATER = replace(_AROUND, now=_DUE + timedelta(seconds=6))


def _blocker(name: str, state: State | None, index: int | None = None) -> Blocker:
    return Blocker(None if state is None else JobId(9), Kind.JOB, name, index, "Succeeded", state)


_STATES: list[tuple[dict[str, Any], str]] = [
    (
        {"state": State.QUEUED, "reason": None},
        "is ready; waits for a free slot of a worker of pool 'default'",
    ),
    (
        {"reason": Reason.BACKOFF, "failures": 2, "due": _DUE},
        "failed 2 times so far; tries again at 2026-01-01T12:00:00Z",
    ),
    (
        {"reason": Reason.BACKOFF, "failures": 1, "due": _DUE},
        "failed once so far; tries again at 2026-01-01T12:00:00Z",
    ),
    ({"reason": Reason.SCHEDULED, "due": _DUE}, "may start at 2026-01-01T12:00:00Z (startAfter)"),
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
        "its jobs have not all ended",
    ),
    ({"kind": Kind.WORKFLOW}, "none of its jobs has begun"),
    ({"kind": Kind.WORKFLOW, "reason": Reason.SUSPENDED}, "is suspended"),
]


@pytest.mark.parametrize(("change", "words"), _STATES)
def test_state_is_told_in_words(change: dict[str, Any], words: str) -> None:
    assert explain(replace(_ROW, **change), [], _AROUND) == [words]


_RETRY = replace(_ROW, reason=Reason.BACKOFF, failures=1, due=_DUE)
_NOBODY = "no maintainer is at work, and it needs one: `workron maintain`"


def test_time_that_has_passed_is_not_promised_any_more() -> None:
    was = "failed once so far; was to be tried again at 2026-01-01T12:00:00Z"
    assert explain(_RETRY, [], _LATER) == [was, "the maintainer at work is behind with it"]
    assert explain(_RETRY, [], replace(_LATER, is_led=False)) == [was, _NOBODY]
    scheduled = replace(_RETRY, reason=Reason.SCHEDULED)
    assert explain(scheduled, [], _LATER)[0].startswith("might have started at 2026-")


def test_time_to_come_is_promised_only_if_a_maintainer_is_there_for_it() -> None:
    assert explain(_RETRY, [], replace(_AROUND, is_led=False))[1:] == [_NOBODY]


def test_running_job_whose_worker_may_be_gone_unnoticed_says_so() -> None:
    running = replace(_ROW, state=State.RUNNING, reason=None, worker="w", attempts=1)
    first, second = explain(running, [], replace(_AROUND, is_led=False))
    assert first == "runs on worker w, attempt 1"
    assert "`workron maintain` or `workron run` on this store finds out" in second


def test_ready_job_of_a_pool_without_workers_says_so() -> None:
    ready = replace(_ROW, state=State.QUEUED, reason=None, pool="bigg")
    assert explain(ready, [], _AROUND) == ["is ready; no worker of pool 'bigg' is there"]
    assert brief(ready, _AROUND) == "no worker of pool 'bigg' is there"
    assert brief(replace(ready, kind=Kind.WORKFLOW), _AROUND) == ""


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (Signal.CANCEL, "is being cancelled"),
        (Signal.EXPIRE, "is being ended, for its deadline has passed"),
        (Signal.HOLD, "is to be suspended when this attempt is over"),
    ],
)
def test_what_was_asked_of_a_running_job_is_told_before_it_is_in_effect(
    mark: Signal, words: str
) -> None:
    running = replace(_ROW, state=State.RUNNING, reason=None, worker="w", attempts=1)
    around = replace(_AROUND, marks={running.job: mark})
    assert explain(running, [], around) == [words, "runs on worker w, attempt 1"]
    assert brief(running, around) == words
    assert brief(replace(running, job=JobId(3)), around) == ""


def test_workflow_is_being_cancelled_while_any_of_its_jobs_is() -> None:
    flow = replace(_ROW, kind=Kind.WORKFLOW, state=State.RUNNING, reason=None)
    around = replace(_AROUND, marks={JobId(3): Signal.CANCEL})
    assert explain(flow, [], around) == ["is being cancelled", "its jobs have not all ended"]
    assert brief(replace(flow, state=State.CANCELLED), around) == ""


def test_brief_word_for_a_time_that_has_passed_names_it() -> None:
    assert brief(_RETRY, _AROUND) == ""
    assert brief(_RETRY, _LATER) == "was due at 2026-01-01T12:00:00Z"
    assert brief(_RETRY, replace(_LATER, is_led=False)).endswith("Z, no maintainer")


@pytest.mark.parametrize("reason", [None, Reason.TIMEOUT])
def test_nothing_is_explained_of_what_has_ended(reason: Reason | None) -> None:
    state = State.FAILED if reason else State.SUCCEEDED
    assert explain(replace(_ROW, state=state, reason=reason), [], _AROUND) == []


def test_only_a_command_that_waits_for_others_is_blocked() -> None:
    assert is_blocked(_ROW)
    for change in ({"kind": Kind.WORKFLOW}, {"state": State.QUEUED}, {"reason": Reason.BACKOFF}):
        assert not is_blocked(replace(_ROW, **change))


def test_open_upstreams_are_named_and_ended_ones_only_counted() -> None:
    blockers = [_blocker("a", State.RUNNING), _blocker("b", None), _blocker("c", State.SUCCEEDED)]
    assert explain(_ROW, blockers, _AROUND) == [
        "waits for 2 of 3 upstreams:",
        "  a is Running; asked for: Succeeded",
        "  Job 'b', which is not in the store yet; asked for: Succeeded",
    ]


def test_element_of_an_array_is_named_by_its_index() -> None:
    assert "  a/3 is Queued; asked for: Succeeded" in explain(
        _ROW, [_blocker("a", State.QUEUED, 3)], _AROUND
    )


def test_many_upstreams_are_cut_short() -> None:
    lines = explain(_ROW, [_blocker(f"a{n}", State.QUEUED) for n in range(1000)], _AROUND)
    assert lines[0] == "waits for 1,000 of 1,000 upstreams:"
    assert (len(lines), lines[-1]) == (12, "  and 990 more")
