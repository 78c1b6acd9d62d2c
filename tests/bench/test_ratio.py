"""Ratios are computed per pair, and their interval widens with fewer pairs."""

import math

import pytest

from bench import ratio
from bench.figure import Against, Figure, Goal, Side
from bench.turns import Row, measured


def test_median_is_that_of_the_ratios_of_pairs() -> None:
    # The machine was twice as fast in the second round, which affects no pair.
    assert ratio.of([10, 20, 10], [5, 10, 5]) == (2, 2, 2)


@pytest.mark.parametrize(("count", "left_out"), [(1, 0), (5, 0), (7, 0), (8, 1), (11, 2)])
def test_interval_omits_as_many_ratios_as_its_confidence_allows(count: int, left_out: int) -> None:
    seen = [float(one) for one in range(1, count + 1)]
    assert ratio.of(seen, [1.0] * count)[1:] == (1 + left_out, count - left_out)
    below = sum(math.comb(count, one) for one in range(left_out + 1))
    if count >= 5:
        assert 1 - 2 * below / 2**count >= 0.9


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        (Goal(1.0), "yes"),
        (Goal(1.5), "just"),
        (Goal(2.5), "no"),
        (Goal(3.5, is_most=True), "yes"),
        (Goal(2.5, is_most=True), "just"),
        (Goal(1.5, is_most=True), "no"),
        (None, ""),
    ],
)
def test_verdict_shows_whether_the_interval_or_only_the_median_reaches_the_goal(
    goal: Goal | None, verdict: str
) -> None:
    side = Side("one", lambda: 1.0)
    figure = Figure("name", "jobs/s", side, [])
    assert Row(figure, side, goal, [1.0, 2.0, 3.0], [1.0, 1.0, 1.0]).verdict == verdict


def test_sides_are_measured_in_turns() -> None:
    seen: list[str] = []

    def note(name: str) -> float:
        seen.append(name)
        return float(len(seen))

    def side(name: str) -> Side:
        return Side(name, lambda: note(name))

    figure = Figure("name", "s", side("a"), [Against(side("b")), Against(side("c"))])
    rows = measured(figure, 2, lambda _: None)
    assert "".join(seen) == "abcabc"
    assert [row.their_values for row in rows] == [[2, 5], [3, 6]]
    assert rows[0].our_values == [1, 4]
