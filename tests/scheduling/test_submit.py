"""Submit and cancel: from manifests to acknowledged runs."""

import random
import uuid
from collections.abc import Sequence
from typing import cast

import pytest

from tests.scheduling.conftest import job, register_worker, workflow
from tests.scheduling.conftest import submit as submit_plan
from workron.core import errors
from workron.core.ids import ClaimId, JobId
from workron.core.manifest import load
from workron.core.manifest.load import Manifest
from workron.core.plan import Plan
from workron.core.states import Reason, State
from workron.scheduling import submit
from workron.scheduling.submit import SubmitEffect
from workron.store.api import Store, SubmitStore
from workron.store.types import AttemptReport, Outcome, SubmittedRun

_JOB = "apiVersion: workron.dev/v1alpha1\nkind: Job\nmetadata: {{name: {}}}\nspec: {}\n"
_FLOW = "apiVersion: workron.dev/v1alpha1\nkind: Workflow\nmetadata: {{name: {}}}\nspec: {}\n"
_WORDS = ("false", "true")
_POOL = "apiVersion: workron.dev/v1alpha1\nkind: WorkerPool\nmetadata: {name: big}\n"


def _manifests(*texts: str) -> list[Manifest]:
    return load.load([load.ManifestSource("a.yaml", "---\n".join(texts).encode())])


def _plan(*texts: str) -> submit.Request:
    return submit.plan(_manifests(*texts), random.Random())


async def test_runs_are_acknowledged_in_the_order_of_the_files(store: Store) -> None:
    request = _plan(_JOB.format("b", "{command: x}"), _POOL, _JOB.format("a", "{command: x}"))
    answers = await submit.submit(store, request)
    assert [(one.identity.name, one.effect) for one in answers] == [
        ("b", SubmitEffect.CREATED),
        ("a", SubmitEffect.CREATED),
    ]


async def test_existing_run_is_acknowledged_when_the_content_is_the_same(store: Store) -> None:
    text = _JOB.format("a", "{command: x}")
    [first] = await submit.submit(store, _plan(text))
    [second] = await submit.submit(store, _plan(text))
    assert (second.run, second.effect) == (first.run, SubmitEffect.NONE)


async def test_existing_run_is_suspended_and_resumed_as_its_manifest_says(
    store: Store,
) -> None:
    running, suspended = (_JOB.format("a", f"{{command: x, suspend: {word}}}") for word in _WORDS)
    [first] = await submit.submit(store, _plan(running))
    effects = []
    for text in (suspended, suspended, running, running):
        [again] = await submit.submit(store, _plan(text))
        assert again.run == first.run
        [row] = await store.list_jobs(first.run)
        effects.append((again.effect, row.reason))
    assert effects == [
        (SubmitEffect.SUSPENDED, Reason.SUSPENDED),
        (SubmitEffect.NONE, Reason.SUSPENDED),
        (SubmitEffect.RESUMED, None),
        (SubmitEffect.NONE, None),
    ]


async def test_each_submission_is_a_new_run_when_the_name_is_generated(store: Store) -> None:
    text = _JOB.format("a", "{command: x}").replace("name:", "generateName:")
    names = {(await submit.submit(store, _plan(text)))[0].identity.name for _ in range(3)}
    assert len(names) == 3


async def test_run_is_cancelled_when_its_manifest_says_so(store: Store) -> None:
    request = _plan(_JOB.format("a", "{command: x, cancel: true}"))
    [one] = await submit.submit(store, request)
    assert (await store.list_jobs(one.run))[0].state is State.CANCELLED


class RecordingStore:
    """Passes calls to a store, and records them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: list[str] = []

    async def submit(self, plans: Sequence[Plan]) -> Sequence[SubmittedRun]:
        self.calls += [
            f"submit {'suspended' if plan.is_suspended else 'unsuspended'}" for plan in plans
        ]
        return await self._store.submit(plans)

    async def cancel(self, run: JobId, *, force: bool) -> bool:
        self.calls.append("cancel")
        return await self._store.cancel(run, force=force)


async def test_cancelled_run_is_stored_suspended_so_that_no_command_starts(store: Store) -> None:
    recorder = RecordingStore(store)
    request = _plan(
        _JOB.format("a", "{command: x, cancel: true}"), _JOB.format("b", "{command: x}")
    )
    answers = await submit.submit(cast("SubmitStore", recorder), request)
    assert recorder.calls == ["submit suspended", "submit unsuspended", "cancel"]
    assert [one.effect for one in answers] == [SubmitEffect.CANCELLED, SubmitEffect.CREATED]


async def test_existing_run_is_cancelled_when_its_manifest_says_so(store: Store) -> None:
    [first] = await submit.submit(store, _plan(_JOB.format("a", "{command: x}")))
    [again] = await submit.submit(store, _plan(_JOB.format("a", "{command: x, cancel: true}")))
    assert (again.run, again.effect) == (first.run, SubmitEffect.CANCELLED)
    assert (await store.list_jobs(first.run))[0].state is State.CANCELLED


async def test_no_token_is_created_when_the_files_have_a_pool(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(store, "ensure_pool", lambda _, name: calls.append(name))
    await submit.submit(store, _plan(_POOL, _JOB.format("a", "{command: x, pool: big}")))
    assert calls == []
    assert set(await store.pool_demand()) == {("default", "big")}


async def test_pools_of_the_files_and_of_the_commands_are_known() -> None:
    request = _plan(
        _POOL,
        _JOB.format("a", "{command: x, pool: gpu}"),
        _FLOW.format("f", "{tasks: [{name: a, command: x}, {name: b, pool: io, command: x}]}"),
    )
    assert request.pools == {("default", "big")}
    assert request.wanted_pools == {("default", name) for name in ("gpu", "default", "io")}


def test_every_workflow_is_named_with_its_place_when_it_is_not_a_dag() -> None:
    cycle = "{tasks: [{name: a, command: x, dependsOn: [{name: a}]}]}"
    with pytest.raises(errors.ManifestError) as refused:
        _plan(_FLOW.format("f", cycle), _JOB.format("ok", "{command: x}"), _FLOW.format("g", cycle))
    assert [problem.split(":")[:2] for problem in refused.value.problems] == [
        ["a.yaml", "4"], ["a.yaml", "14"],
    ]  # fmt: skip


async def test_nothing_is_stored_when_one_plan_is_refused(store: Store) -> None:
    await submit.submit(store, _plan(_JOB.format("taken", "{command: x}")))
    both = _plan(_JOB.format("new", "{command: x}"), _JOB.format("taken", "{command: other}"))
    with pytest.raises(errors.NameTakenError):
        await submit.submit(store, both)
    assert [run.name for run in await store.list_runs("default")] == ["taken"]


async def test_cancelled_workflow_ends_when_no_maintainer_runs(store: Store) -> None:
    run = await submit_plan(store, workflow("w", {"name": "many", "count": 3}))
    [row] = await store.list_runs()
    await submit.cancel(store, row)
    assert (await store.list_jobs(run))[0].state is State.CANCELLED


async def test_cancel_is_refused_when_the_run_has_ended(store: Store) -> None:
    await submit_plan(store, job("a"))
    [run] = await store.list_runs()
    session = await register_worker(store)
    [claimed] = await store.claim(session.key, [ClaimId(uuid.uuid4())])
    await store.complete(session.key, [AttemptReport(claimed.job, *claimed.ref, Outcome.SUCCEEDED)])
    with pytest.raises(errors.StateError, match="Job 'a' has ended; it cannot be cancelled"):
        await submit.cancel(store, run)


def test_upstream_is_not_missing_when_it_is_in_another_file() -> None:
    plans = [job("a", dependsOn=[{"name": "b"}]), job("b")]
    submit.refuse_missing_upstreams(plans)


def test_upstream_is_missing_when_only_the_other_kind_has_its_name() -> None:
    plans = [job("a", dependsOn=[{"name": "b", "kind": "Workflow"}]), job("b")]
    with pytest.raises(errors.InputError, match=r"^Job 'a' depends on Workflow 'b', which is in"):
        submit.refuse_missing_upstreams(plans)


def test_all_missing_upstreams_are_named_in_one_error() -> None:
    plans = [job("a", dependsOn=[{"name": "x"}]), job("s", suspend=True)]
    with pytest.raises(errors.InputError) as refused:
        submit.refuse_missing_upstreams(plans)
    assert str(refused.value).count("\n") == 1


async def test_upstream_is_not_noted_when_the_store_has_it(store: Store) -> None:
    await submit_plan(store, job("there"))
    plans = [job("a", dependsOn=[{"name": "there"}, {"name": "absent"}]), job("s", suspend=True)]
    assert await submit.missing_upstream_notes(store, plans) == [
        "a waits for Job 'absent', which is not in the store yet",
        "s is suspended; to resume it, submit its file without `suspend: true`",
    ]
