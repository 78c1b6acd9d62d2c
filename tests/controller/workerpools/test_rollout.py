"""The steps that lead from what was observed to the desired state."""

import math
from typing import Any

import pytest

from tests.controller.workerpools.observed_objects import (
    observed_pool,
    pod,
    replica_set,
    starting,
    worker,
)
from workron.store.types import WorkerRow
from workron_controller.workerpools.observed import ObservedPool
from workron_controller.workerpools.rollout import (
    CreateReplicaSet,
    DeletePod,
    DeleteReplicaSet,
    MarkPodForDeletion,
    RolloutPlan,
    RolloutStep,
    ScaleReplicaSet,
    UnmarkPod,
)


def _plan(
    observed: ObservedPool, replicas: int, *workers: WorkerRow, max_workers: float = math.inf
) -> list[RolloutStep]:
    by_pod = {one.name: [one] for one in workers}
    return list(RolloutPlan(observed, by_pod, "new", replicas, max_workers).steps())


def _marked(steps: list[RolloutStep]) -> list[str]:
    return [step.pod.name for step in steps if isinstance(step, MarkPodForDeletion)]


def _replicas(steps: list[RolloutStep]) -> dict[str, int]:
    """Return the new size of each ReplicaSet, by revision."""
    return {
        step.replica_set.revision if isinstance(step, ScaleReplicaSet) else "new": step.replicas
        for step in steps
        if isinstance(step, CreateReplicaSet | ScaleReplicaSet)
    }


def test_no_replica_set_is_created_when_no_worker_is_needed() -> None:
    assert _plan(observed_pool(), 0) == []


def test_first_replica_set_has_the_desired_size() -> None:
    assert _plan(observed_pool(), 3) == [CreateReplicaSet(3)]


def test_replica_set_is_scaled_up_at_once() -> None:
    one = replica_set(replicas=1)
    assert _plan(observed_pool([one], pod("a")), 5) == [ScaleReplicaSet(one, 5)]


def test_no_step_is_planned_when_the_replica_set_has_the_desired_size() -> None:
    assert _plan(observed_pool([replica_set(replicas=1)], starting("a")), 1) == []


def test_newest_replica_set_is_kept_when_it_is_empty() -> None:
    assert _plan(observed_pool([replica_set(replicas=0)]), 0) == []


def test_scale_up_is_limited_by_max_workers() -> None:
    one = replica_set(replicas=2)
    terminating = pod("c", is_terminating=True)
    observed = observed_pool([one], pod("a"), pod("b"), terminating)
    assert _replicas(_plan(observed, 9, max_workers=5)) == {"new": 4}
    assert _plan(observed, 9, max_workers=3) == []
    assert _plan(observed, 9, max_workers=-2) == []


def test_pending_pods_count_against_max_workers() -> None:
    one = replica_set(replicas=4)
    assert _plan(observed_pool([one], pod("a")), 9, max_workers=4) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (starting("x", node=None), starting("a")),
        (starting("x"), pod("a")),
        (pod("x", created_at="2026-01-02T00:00:00Z"), pod("a")),
    ],
    ids=["without a node", "not ready", "younger"],
)
def test_pods_are_marked_in_the_order_in_which_the_replica_set_deletes_them(
    first: Any, second: Any
) -> None:
    observed = observed_pool([replica_set(replicas=2)], second, first)
    workers = [worker("x", claims=3), worker("a", claims=3)]
    assert _marked(_plan(observed, 1, *workers)) == ["x"]


def test_pods_with_the_fewest_jobs_are_marked_when_they_are_equal_otherwise() -> None:
    observed = observed_pool([replica_set(replicas=3)], pod("a"), pod("b"), pod("c"))
    workers = [worker("a", claims=4), worker("b"), worker("c", claims=1)]
    steps = _plan(observed, 1, *workers)
    assert _marked(steps) == ["b", "c"]
    assert _replicas(steps) == {"new": 1}


def test_draining_worker_is_marked_before_an_idle_one() -> None:
    observed = observed_pool([replica_set(replicas=2)], pod("a"), pod("b"))
    workers = [worker("a", claims=4, is_draining=True), worker("b")]
    assert _marked(_plan(observed, 1, *workers)) == ["a"]


def test_pod_is_marked_before_its_replica_set_is_scaled_down() -> None:
    one, idle = replica_set(replicas=1), worker("a")
    steps = _plan(observed_pool([one], pod("a")), 0, idle)
    assert steps == [MarkPodForDeletion(pod("a"), [idle]), ScaleReplicaSet(one, 0)]


def test_replica_set_is_not_scaled_down_again_when_it_has_not_deleted_a_pod_yet() -> None:
    observed = observed_pool([replica_set(replicas=1)], pod("a"), pod("b"))
    assert _plan(observed, 1, worker("a"), worker("b")) == []


def test_terminating_pods_are_not_marked() -> None:
    observed = observed_pool(
        [replica_set(replicas=2)], pod("a", is_terminating=True), pod("b"), pod("c")
    )
    assert _marked(_plan(observed, 1, worker("c", claims=2))) == ["b"]


def test_no_pod_is_marked_when_enough_were_never_created() -> None:
    one = replica_set(replicas=5)
    steps = _plan(observed_pool([one], pod("a"), pod("b")), 2)
    assert steps == [ScaleReplicaSet(one, 2)]


def test_pod_is_unmarked_when_it_was_not_deleted() -> None:
    stayed = pod("a", deletion_cost=-1000)
    steps = _plan(
        observed_pool([replica_set(replicas=2)], stayed, pod("b")), 1, worker("a", claims=3)
    )
    assert _marked(steps) == ["b"]
    assert UnmarkPod(stayed) in steps


def test_new_revision_starts_with_a_quarter_when_old_workers_are_ready() -> None:
    old = replica_set("old", replicas=8)
    pods = [pod(f"old-{at}", "old") for at in range(8)]
    assert _plan(observed_pool([old], *pods), 8) == [CreateReplicaSet(2)]


def test_old_workers_are_removed_when_new_ones_become_ready() -> None:
    sets = [replica_set("old", replicas=8), replica_set(replicas=2)]
    pods = [pod(f"old-{at}", "old") for at in range(8)]
    observed = observed_pool(sets, *pods, pod("a"), starting("b"))
    steps = _plan(observed, 8)
    assert _replicas(steps) == {"old": 7, "new": 3}
    assert len(_marked(steps)) == 1


def test_old_workers_stay_when_new_ones_are_not_ready() -> None:
    sets = [replica_set("old", replicas=2), replica_set(replicas=1)]
    pods = [pod("x", "old"), pod("y", "old"), starting("a")]
    assert _plan(observed_pool(sets, *pods), 2) == []


def test_old_workers_are_removed_at_once_when_they_were_never_ready() -> None:
    sets = [replica_set("old", replicas=2)]
    pods = [starting("x", "old"), starting("y", "old")]
    steps = _plan(observed_pool(sets, *pods), 2)
    assert _replicas(steps) == {"old": 0, "new": 2}


def test_old_worker_is_kept_when_it_is_unready_but_claims_jobs() -> None:
    sets = [replica_set("old", replicas=1)]
    steps = _plan(observed_pool(sets, starting("x", "old")), 1, worker("x", claims=4))
    assert _replicas(steps) == {"new": 1}


def test_oldest_revision_is_scaled_down_first() -> None:
    sets = [replica_set("older", replicas=1), replica_set("old", replicas=1), replica_set()]
    pods = [pod("x", "older"), pod("y", "old"), pod("a")]
    assert _marked(_plan(observed_pool(sets, *pods), 2)) == ["x"]


def test_working_revision_is_kept_when_the_one_between_never_became_ready() -> None:
    sets = [replica_set("older", replicas=2), replica_set("old", replicas=1)]
    pods = [pod("x", "older"), pod("y", "older"), starting("a", "old")]
    assert _replicas(_plan(observed_pool(sets, *pods), 2)) == {"old": 0, "new": 1}


def test_draining_pod_is_deleted_when_its_replica_set_was_not_scaled_down() -> None:
    observed = observed_pool([replica_set(replicas=2)], pod("a"), pod("b"))
    workers = [worker("a", claims=1, is_draining=True), worker("b", claims=4)]
    assert _plan(observed, 2, *workers) == [DeletePod(pod("a"))]


def test_draining_pod_is_left_to_its_replica_set_when_that_has_one_to_delete() -> None:
    observed = observed_pool([replica_set(replicas=1)], pod("a"), pod("b"))
    assert _plan(observed, 1, worker("a", is_draining=True), worker("b")) == []
    terminating = observed_pool([replica_set()], pod("a", is_terminating=True), pod("b"))
    assert _plan(terminating, 1, worker("a", is_draining=True), worker("b")) == []


def test_old_replica_set_is_scaled_to_zero_when_no_worker_is_needed() -> None:
    observed = observed_pool([replica_set("old", replicas=1)], pod("x", "old"))
    assert _replicas(_plan(observed, 0, worker("x", claims=1))) == {"old": 0}


def test_old_replica_set_is_deleted_when_its_pods_have_ended() -> None:
    old = replica_set("old", replicas=0)
    assert _plan(observed_pool([old, replica_set()], pod("a")), 1) == [DeleteReplicaSet(old)]
    terminating = pod("x", "old", is_terminating=True)
    assert _plan(observed_pool([old, replica_set()], pod("a"), terminating), 1) == []


def _roll_out(replicas: int, room: float) -> list[int]:
    """Take all steps of a rollout; the ReplicaSets create and delete their pods in between.

    Returns the number of working pods before each step.
    """
    sets = {"old": replicas, "new": 0}
    working = []
    for _ in range(5 * replicas):
        pods = [pod(f"{name}-{at}", name) for name, size in sets.items() for at in range(size)]
        observed = observed_pool([replica_set(name, size) for name, size in sets.items()], *pods)
        assert len(pods) <= max(room, replicas)
        working.append(len(pods))
        steps = _plan(observed, replicas, max_workers=room)
        if all(isinstance(step, DeleteReplicaSet) for step in steps):
            break
        sets |= _replicas(steps)
    assert sets == {"old": 0, "new": replicas}
    return working


@pytest.mark.parametrize("replicas", [1, 2, 5, 30])
def test_rollout_completes_with_all_workers_when_room_suffices(replicas: int) -> None:
    assert min(_roll_out(replicas, math.inf)) >= replicas


@pytest.mark.parametrize("replicas", [1, 2, 5, 30])
def test_rollout_completes_with_few_missing_workers_when_room_is_short(replicas: int) -> None:
    assert min(_roll_out(replicas, replicas)) >= replicas - max(1, replicas // 4) - 1


def test_rollout_waits_when_room_is_short_and_the_new_worker_is_not_ready() -> None:
    sets = [replica_set("old", replicas=2), replica_set(replicas=1)]
    pods = [pod("x", "old"), pod("y", "old"), starting("a")]
    assert _plan(observed_pool(sets, *pods), 3, max_workers=3) == []
