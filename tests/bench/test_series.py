"""What is measured once is read by several, each round by each of them."""

import itertools

from bench.series import Series


def test_whoever_comes_first_to_a_round_measures_it_for_all() -> None:
    numbers = itertools.count(1)
    series = Series(lambda: next(numbers))
    one = series.side("one", float)
    tenfold = series.side("tenfold", lambda number: number * 10.0)
    assert [one.measure(), one.measure()] == [1, 2]
    assert [tenfold.measure() for _ in range(3)] == [10, 20, 30]
    assert one.measure() == 3
