"""Connections of a database, and the workers that pools may have for them."""

import math

import pytest

from workron_controller.workerpools.autoscaler import CONNECTIONS_PER_WORKER, ConnectionBudget


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
def test_shares(workers: int, wanted: dict[str, int], shares: dict[str, int]) -> None:
    budget = _budget(workers, **wanted)
    assert {pool: budget.share(pool) for pool in wanted} == shares


def test_workers_of_no_pool_take_room_and_no_share() -> None:
    budget = ConnectionBudget(10 * CONNECTIONS_PER_WORKER)
    budget.set_demand({"a": 10}, {}, others=4)
    assert (budget.share("a"), budget.headroom("a")) == (10, 6)


def test_nobody_is_held_back_where_nobody_counts() -> None:
    budget = ConnectionBudget(None)
    budget.set_demand({"a": 1000}, {})
    assert (budget.max_workers, budget.share("a"), budget.headroom("a")) == (None, 1000, math.inf)
    budget.set_database_limit(None)
    assert budget.max_workers is None


def test_three_of_four_connections_are_for_workers_unless_it_is_said_otherwise() -> None:
    budget = ConnectionBudget(None)
    budget.set_database_limit(97)
    assert budget.max_workers == 18
    said = ConnectionBudget(200)
    said.set_database_limit(97)
    assert said.max_workers == 50


def test_room_is_what_the_others_leave_as_they_are() -> None:
    budget = _budget(10, a=5, b=5)
    budget.set_present("a", 8)
    assert budget.headroom("b") == 2
    budget.set_present("b", 2)
    assert budget.headroom("a") == 8


def test_pool_that_is_gone_takes_no_room() -> None:
    budget = _budget(10, a=5, b=5)
    budget.set_present("a", 10)
    budget.set_demand({"b": 5}, {})
    assert budget.headroom("b") == 10


def test_workers_of_which_nothing_was_noted_count_from_the_beginning() -> None:
    budget = ConnectionBudget(10 * CONNECTIONS_PER_WORKER)
    budget.set_demand({"a": 5, "b": 5}, {"a": 9})
    assert budget.headroom("b") == 1
    budget.set_present("a", 4)
    budget.set_demand({"a": 5, "b": 5}, {"a": 9})
    assert budget.headroom("b") == 6
