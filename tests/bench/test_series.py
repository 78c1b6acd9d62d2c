"""Several sides read the result of one measurement per round."""

import itertools

from bench.series import Series


def test_first_side_of_a_round_measures_for_all() -> None:
    numbers = itertools.count(1)
    series = Series(lambda: next(numbers))
    one = series.side("one", float)
    tenfold = series.side("tenfold", lambda number: number * 10.0)
    assert [one.measure(), one.measure()] == [1, 2]
    assert [tenfold.measure() for _ in range(3)] == [10, 20, 30]
    assert one.measure() == 3
