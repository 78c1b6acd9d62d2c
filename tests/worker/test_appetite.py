"""An agent asks for as many claims as it is likely to get."""

from workron_worker.claims import _FIRST, _LEAST, ClaimLimit


def test_appetite_doubles_while_it_is_fed_up_to_what_is_free() -> None:
    appetite = ClaimLimit(1000)
    asked = []
    for _ in range(4):
        asked.append(appetite.of(200))
        is_to_go_on = appetite.fed(asked=asked[-1], granted=asked[-1])
        assert is_to_go_on is (asked[-1] < 200)
    assert asked == [_FIRST, 2 * _FIRST, 4 * _FIRST, 200]


def test_half_of_many_slots_is_the_most_that_is_asked_for() -> None:
    appetite = ClaimLimit(1000)
    for _ in range(10):
        appetite.fed(asked=appetite.of(1000), granted=appetite.of(1000))
    assert appetite.of(1000) == 500


def test_few_slots_are_asked_for_all_at_once() -> None:
    assert ClaimLimit(16).of(16) == 16


def test_appetite_shrinks_when_little_comes_and_never_below_its_least() -> None:
    appetite = ClaimLimit(1000)
    assert not appetite.fed(asked=appetite.of(1000), granted=_LEAST)
    assert appetite.of(1000) == 2 * _LEAST
    assert not appetite.fed(asked=2 * _LEAST, granted=1)
    assert appetite.of(1000) == _LEAST
    assert not appetite.fed(asked=_LEAST, granted=0)
    assert appetite.of(1000) == _LEAST


def test_appetite_comes_back_with_what_comes() -> None:
    appetite = ClaimLimit(1000)
    appetite.fed(asked=_FIRST, granted=1)
    for step in range(5):
        asked = appetite.of(1000)
        assert asked == _LEAST * 2**step
        assert appetite.fed(asked=asked, granted=asked)


def test_appetite_stays_where_most_of_it_was_met() -> None:
    appetite = ClaimLimit(1000)
    appetite.fed(asked=_FIRST, granted=_FIRST)
    assert not appetite.fed(asked=2 * _FIRST, granted=2 * _FIRST - 1)
    assert appetite.of(1000) == 2 * _FIRST


def test_few_free_slots_do_not_spoil_it() -> None:
    appetite = ClaimLimit(1000)
    appetite.fed(asked=4 * _FIRST, granted=4 * _FIRST)
    assert not appetite.fed(asked=appetite.of(1), granted=1)
    assert appetite.of(1000) == 8 * _FIRST


def test_who_asked_for_nothing_learned_nothing() -> None:
    appetite = ClaimLimit(1000)
    assert not appetite.fed(asked=0, granted=0)
    assert appetite.of(1000) == _FIRST
