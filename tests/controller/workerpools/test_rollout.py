"""Which set is made, grown or shrunk, and which worker goes: what was seen, and what follows."""

import math
from typing import Any

import pytest

from tests.controller.workerpools.observed_objects import pod, replica_set, sight, starting, worker
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

Aim = tuple[int, float]


def _aim(replicas: int, room: float = math.inf) -> Aim:
    return replicas, room


def _plan(seen: ObservedPool, aim: Aim, *staff: WorkerRow) -> list[RolloutStep]:
    by_pod = {one.name: [one] for one in staff}
    return list(RolloutPlan(seen, by_pod, "new", *aim).steps())


def _chosen(steps: list[RolloutStep]) -> list[str]:
    return [step.pod.name for step in steps if isinstance(step, MarkPodForDeletion)]


def _sizes(steps: list[RolloutStep]) -> dict[str, int]:
    """Tell of each set how big it is to be."""
    return {
        step.replica_set.revision if isinstance(step, ScaleReplicaSet) else "new": step.replicas
        for step in steps
        if isinstance(step, CreateReplicaSet | ScaleReplicaSet)
    }


def test_pool_that_needs_nobody_has_no_set() -> None:
    assert _plan(sight(), _aim(0)) == []


def test_first_set_is_made_as_big_as_it_is_to_be() -> None:
    assert _plan(sight(), _aim(3)) == [CreateReplicaSet(3)]


def test_set_grows_at_once() -> None:
    one = replica_set(replicas=1)
    assert _plan(sight([one], pod("a")), _aim(5)) == [ScaleReplicaSet(one, 5)]


def test_set_that_is_as_big_as_it_is_to_be_is_let_be() -> None:
    assert _plan(sight([replica_set(replicas=1)], starting("a")), _aim(1)) == []


def test_set_stays_when_it_is_empty() -> None:
    assert _plan(sight([replica_set(replicas=0)]), _aim(0)) == []


def test_growth_ends_where_the_room_does() -> None:
    one = replica_set(replicas=2)
    ending = pod("c", is_terminating=True)
    seen = sight([one], pod("a"), pod("b"), ending)
    assert _sizes(_plan(seen, _aim(9, room=5))) == {"new": 4}
    assert _plan(seen, _aim(9, room=3)) == []
    assert _plan(seen, _aim(9, room=-2)) == []


def test_pods_that_are_asked_for_and_not_made_yet_take_room() -> None:
    one = replica_set(replicas=4)
    assert _plan(sight([one], pod("a")), _aim(9, room=4)) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (starting("x", node=None), starting("a")),
        (starting("x"), pod("a")),
        (pod("x", created_at="2026-01-02T00:00:00Z"), pod("a")),
    ],
    ids=["one without a node", "one that is not ready", "the younger one"],
)
def test_who_goes_first_is_who_the_set_would_end_first(first: Any, second: Any) -> None:
    seen = sight([replica_set(replicas=2)], second, first)
    staff = [worker("x", held=3), worker("a", held=3)]
    assert _chosen(_plan(seen, _aim(1), *staff)) == ["x"]


def test_of_equal_ones_who_does_least_goes() -> None:
    seen = sight([replica_set(replicas=3)], pod("a"), pod("b"), pod("c"))
    staff = [worker("a", held=4), worker("b"), worker("c", held=1)]
    steps = _plan(seen, _aim(1), *staff)
    assert _chosen(steps) == ["b", "c"]
    assert _sizes(steps) == {"new": 1}


def test_who_takes_no_jobs_any_more_goes_before_who_has_none() -> None:
    seen = sight([replica_set(replicas=2)], pod("a"), pod("b"))
    staff = [worker("a", held=4, is_draining=True), worker("b")]
    assert _chosen(_plan(seen, _aim(1), *staff)) == ["a"]


def test_worker_is_chosen_before_its_set_is_shrunk() -> None:
    one, idle = replica_set(replicas=1), worker("a")
    steps = _plan(sight([one], pod("a")), _aim(0), idle)
    assert steps == [MarkPodForDeletion(pod("a"), [idle]), ScaleReplicaSet(one, 0)]


def test_set_that_was_shrunk_and_has_not_ended_a_pod_yet_is_not_shrunk_again() -> None:
    seen = sight([replica_set(replicas=1)], pod("a"), pod("b"))
    assert _plan(seen, _aim(1), worker("a"), worker("b")) == []


def test_pods_that_end_anyway_are_not_chosen() -> None:
    seen = sight([replica_set(replicas=2)], pod("a", is_terminating=True), pod("b"), pod("c"))
    assert _chosen(_plan(seen, _aim(1), worker("c", held=2))) == ["b"]


def test_pods_that_were_never_made_need_nobody_to_go() -> None:
    one = replica_set(replicas=5)
    steps = _plan(sight([one], pod("a"), pod("b")), _aim(2))
    assert steps == [ScaleReplicaSet(one, 2)]


def test_pod_that_was_chosen_and_stayed_is_like_any_other_again() -> None:
    stayed = pod("a", deletion_cost=-1000)
    steps = _plan(sight([replica_set(replicas=2)], stayed, pod("b")), _aim(1), worker("a", held=3))
    assert _chosen(steps) == ["b"]
    assert UnmarkPod(stayed) in steps


def test_new_revision_begins_with_some_while_all_old_ones_stay() -> None:
    old = replica_set("old", replicas=8)
    pods = [pod(f"old-{at}", "old") for at in range(8)]
    assert _plan(sight([old], *pods), _aim(8)) == [CreateReplicaSet(2)]


def test_old_ones_go_as_new_ones_get_ready() -> None:
    sets = [replica_set("old", replicas=8), replica_set(replicas=2)]
    pods = [pod(f"old-{at}", "old") for at in range(8)]
    seen = sight(sets, *pods, pod("a"), starting("b"))
    steps = _plan(seen, _aim(8))
    assert _sizes(steps) == {"old": 7, "new": 3}
    assert len(_chosen(steps)) == 1


def test_new_revision_that_does_not_get_ready_ends_no_old_one() -> None:
    sets = [replica_set("old", replicas=2), replica_set(replicas=1)]
    pods = [pod("x", "old"), pod("y", "old"), starting("a")]
    assert _plan(sight(sets, *pods), _aim(2)) == []


def test_old_ones_that_never_got_ready_make_room_at_once() -> None:
    sets = [replica_set("old", replicas=2)]
    pods = [starting("x", "old"), starting("y", "old")]
    steps = _plan(sight(sets, *pods), _aim(2))
    assert _sizes(steps) == {"old": 0, "new": 2}


def test_old_one_that_answers_no_probe_but_takes_jobs_is_kept() -> None:
    sets = [replica_set("old", replicas=1)]
    steps = _plan(sight(sets, starting("x", "old")), _aim(1), worker("x", held=4))
    assert _sizes(steps) == {"new": 1}


def test_oldest_revision_goes_first() -> None:
    sets = [replica_set("older", replicas=1), replica_set("old", replicas=1), replica_set()]
    pods = [pod("x", "older"), pod("y", "old"), pod("a")]
    assert _chosen(_plan(sight(sets, *pods), _aim(2))) == ["x"]


def test_revision_that_followed_at_once_ends_none_of_those_that_work() -> None:
    sets = [replica_set("older", replicas=2), replica_set("old", replicas=1)]
    pods = [pod("x", "older"), pod("y", "older"), starting("a", "old")]
    assert _sizes(_plan(sight(sets, *pods), _aim(2))) == {"old": 0, "new": 1}


def test_one_that_takes_no_jobs_and_was_not_ended_makes_way_for_another() -> None:
    seen = sight([replica_set(replicas=2)], pod("a"), pod("b"))
    staff = [worker("a", held=1, is_draining=True), worker("b", held=4)]
    assert _plan(seen, _aim(2), *staff) == [DeletePod(pod("a"))]


def test_one_that_takes_no_jobs_is_left_to_its_set_while_that_has_one_to_end() -> None:
    seen = sight([replica_set(replicas=1)], pod("a"), pod("b"))
    assert _plan(seen, _aim(1), worker("a", is_draining=True), worker("b")) == []
    ending = sight([replica_set()], pod("a", is_terminating=True), pod("b"))
    assert _plan(ending, _aim(1), worker("a", is_draining=True), worker("b")) == []


def test_all_old_ones_go_when_nobody_is_needed() -> None:
    seen = sight([replica_set("old", replicas=1)], pod("x", "old"))
    assert _sizes(_plan(seen, _aim(0), worker("x", held=1))) == {"old": 0}


def test_old_set_is_removed_when_nothing_of_it_runs() -> None:
    old = replica_set("old", replicas=0)
    assert _plan(sight([old, replica_set()], pod("a")), _aim(1)) == [DeleteReplicaSet(old)]
    ending = pod("x", "old", is_terminating=True)
    assert _plan(sight([old, replica_set()], pod("a"), ending), _aim(1)) == []


def _roll_out(replicas: int, room: float) -> list[int]:
    """Take steps until nothing is left to do; each set does as it is told before the next look.

    Gives how many could work at each look.
    """
    sets = {"old": replicas, "new": 0}
    working = []
    for _ in range(5 * replicas):
        pods = [pod(f"{name}-{at}", name) for name, size in sets.items() for at in range(size)]
        seen = sight([replica_set(name, size) for name, size in sets.items()], *pods)
        assert len(pods) <= max(room, replicas)
        working.append(len(pods))
        steps = _plan(seen, _aim(replicas, room))
        if all(isinstance(step, DeleteReplicaSet) for step in steps):
            break
        sets |= _sizes(steps)
    assert sets == {"old": 0, "new": replicas}
    return working


@pytest.mark.parametrize("replicas", [1, 2, 5, 30])
def test_rollout_ends_and_has_all_workers_all_the_time(replicas: int) -> None:
    assert min(_roll_out(replicas, math.inf)) >= replicas


@pytest.mark.parametrize("replicas", [1, 2, 5, 30])
def test_rollout_without_room_lacks_few_workers_and_ends(replicas: int) -> None:
    assert min(_roll_out(replicas, replicas)) >= replicas - max(1, replicas // 4) - 1


def test_rollout_without_room_waits_for_a_new_one_that_does_not_get_ready() -> None:
    sets = [replica_set("old", replicas=2), replica_set(replicas=1)]
    pods = [pod("x", "old"), pod("y", "old"), starting("a")]
    assert _plan(sight(sets, *pods), _aim(3, room=3)) == []
