"""The number of workers that a pool needs, and the connections that limit it."""

import math
from typing import Any

import pytest

from tests.controller.workerpools.observed_objects import spec
from workron_controller.workerpools import autoscaler
from workron_controller.workerpools.autoscaler import (
    CONNECTIONS_PER_WORKER,
    SCALE_DOWN_SECONDS,
    ConnectionBudget,
    ScaleDownDelay,
)


@pytest.mark.parametrize(
    ("fields", "ready", "running", "needed"),
    [
        ({}, 0, 0, 0),
        ({}, 1, 0, 1),
        ({}, 4, 0, 1),
        ({}, 4, 1, 2),
        ({}, 0, 5, 2),
        ({}, 100_000, 0, 10),
        ({"maxReplicas": 0}, 5, 0, 0),
        ({"minReplicas": 2}, 0, 0, 2),
        ({"minReplicas": 2}, 100, 0, 10),
        ({"slots": 1}, 3, 2, 5),
        ({"replicas": 3}, 0, 0, 3),
        ({"replicas": 0, "minReplicas": 1}, 50, 9, 0),
        ({"replicas": 12}, 0, 0, 12),
    ],
)
def test_desired_replicas_cover_all_jobs_within_the_bounds(
    fields: dict[str, Any], ready: int, running: int, needed: int
) -> None:
    assert autoscaler.desired_replicas(spec(**fields), ready, running) == needed


def test_pool_grows_at_once_and_shrinks_when_the_delay_has_passed() -> None:
    delay, pool = ScaleDownDelay(0, now=0), spec()
    assert delay.desired(pool, 5, now=1) == 5
    assert delay.desired(pool, 2, now=2) == 5
    assert delay.desired(pool, 0, now=3) == 5
    assert delay.desired(pool, 0, now=1 + SCALE_DOWN_SECONDS) == 2
    assert delay.desired(pool, 0, now=2 + SCALE_DOWN_SECONDS) == 0


def test_workers_are_kept_when_jobs_come_in_waves() -> None:
    delay, pool = ScaleDownDelay(0, now=0), spec()
    waves = [
        delay.desired(pool, 6 * (at % 2), now=at * SCALE_DOWN_SECONDS * 0.9) for at in range(10)
    ]
    assert set(waves[1:]) == {6}


def test_present_workers_are_kept_when_a_leader_starts() -> None:
    delay = ScaleDownDelay(7, now=100)
    assert delay.desired(spec(), 0, now=101) == 7
    assert delay.desired(spec(), 0, now=100 + SCALE_DOWN_SECONDS) == 0


def test_fixed_replicas_apply_at_once() -> None:
    delay = ScaleDownDelay(7, now=0)
    assert delay.desired(spec(replicas=2), 2, now=1) == 2
    assert delay.desired(spec(), 0, now=2) == 2


def test_pool_shrinks_at_once_when_max_replicas_is_lowered() -> None:
    delay = ScaleDownDelay(0, now=0)
    assert delay.desired(spec(), 10, now=1) == 10
    assert delay.desired(spec(maxReplicas=4), 4, now=2) == 4


def _budget(workers: int, **wanted: int) -> ConnectionBudget:
    budget = ConnectionBudget(workers * CONNECTIONS_PER_WORKER)
    budget.set_demand(wanted, {})
    return budget


@pytest.mark.parametrize(
    ("workers", "wanted", "shares"),
    [
        (10, {"a": 4, "b": 6}, {"a": 4, "b": 6}),
        (10, {"a": 40}, {"a": 10}),
        (10, {"a": 40, "b": 2}, {"a": 8, "b": 2}),
        (10, {"a": 40, "b": 40}, {"a": 5, "b": 5}),
        (10, {"a": 1, "b": 7, "c": 7}, {"a": 1, "b": 5, "c": 4}),
        (2, {"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 0}),
        (0, {"a": 1}, {"a": 0}),
        (5, {"a": 0, "b": 9}, {"a": 0, "b": 5}),
    ],
)
def test_connections_are_shared_fairly(
    workers: int, wanted: dict[str, int], shares: dict[str, int]
) -> None:
    budget = _budget(workers, **wanted)
    assert {pool: budget.share(pool) for pool in wanted} == shares


def test_workers_of_other_pools_reduce_headroom_but_not_shares() -> None:
    budget = ConnectionBudget(10 * CONNECTIONS_PER_WORKER)
    budget.set_demand({"a": 10}, {}, others=4)
    assert (budget.share("a"), budget.headroom("a")) == (10, 6)


def test_budget_is_unlimited_when_no_limit_is_known() -> None:
    budget = ConnectionBudget(None)
    budget.set_demand({"a": 1000}, {})
    assert (budget.max_workers, budget.share("a"), budget.headroom("a")) == (None, 1000, math.inf)
    budget.set_database_limit(None)
    assert budget.max_workers is None


def test_workers_get_three_quarters_of_the_connections_when_no_number_is_set() -> None:
    budget = ConnectionBudget(None)
    budget.set_database_limit(97)
    assert budget.max_workers == 18
    configured = ConnectionBudget(200)
    configured.set_database_limit(97)
    assert configured.max_workers == 50


def test_headroom_is_what_present_workers_of_other_pools_leave() -> None:
    budget = _budget(10, a=5, b=5)
    budget.set_present("a", 8)
    assert budget.headroom("b") == 2
    budget.set_present("b", 2)
    assert budget.headroom("a") == 8


def test_headroom_grows_when_a_pool_was_deleted() -> None:
    budget = _budget(10, a=5, b=5)
    budget.set_present("a", 10)
    budget.set_demand({"b": 5}, {})
    assert budget.headroom("b") == 10


def test_registered_workers_of_a_pool_count_until_its_pods_were_observed() -> None:
    budget = ConnectionBudget(10 * CONNECTIONS_PER_WORKER)
    budget.set_demand({"a": 5, "b": 5}, {"a": 9})
    assert budget.headroom("b") == 1
    budget.set_present("a", 4)
    budget.set_demand({"a": 5, "b": 5}, {"a": 9})
    assert budget.headroom("b") == 6
