"""An agent asks for as many claims as it is likely to get."""

from workron_worker.claims import _INITIAL_BATCH, _MIN_BATCH, ClaimBatchSize


def test_appetite_doubles_while_it_is_fed_up_to_what_is_free() -> None:
    appetite = ClaimBatchSize(1000)
    asked = []
    for _ in range(4):
        asked.append(appetite.limit(200))
        is_to_go_on = appetite.adjust(requested=asked[-1], granted=asked[-1])
        assert is_to_go_on is (asked[-1] < 200)
    assert asked == [_INITIAL_BATCH, 2 * _INITIAL_BATCH, 4 * _INITIAL_BATCH, 200]


def test_half_of_many_slots_is_the_most_that_is_asked_for() -> None:
    appetite = ClaimBatchSize(1000)
    for _ in range(10):
        appetite.adjust(requested=appetite.limit(1000), granted=appetite.limit(1000))
    assert appetite.limit(1000) == 500


def test_few_slots_are_asked_for_all_at_once() -> None:
    assert ClaimBatchSize(16).limit(16) == 16


def test_appetite_shrinks_when_little_comes_and_never_below_its_least() -> None:
    appetite = ClaimBatchSize(1000)
    assert not appetite.adjust(requested=appetite.limit(1000), granted=_MIN_BATCH)
    assert appetite.limit(1000) == 2 * _MIN_BATCH
    assert not appetite.adjust(requested=2 * _MIN_BATCH, granted=1)
    assert appetite.limit(1000) == _MIN_BATCH
    assert not appetite.adjust(requested=_MIN_BATCH, granted=0)
    assert appetite.limit(1000) == _MIN_BATCH


def test_appetite_comes_back_with_what_comes() -> None:
    appetite = ClaimBatchSize(1000)
    appetite.adjust(requested=_INITIAL_BATCH, granted=1)
    for step in range(5):
        asked = appetite.limit(1000)
        assert asked == _MIN_BATCH * 2**step
        assert appetite.adjust(requested=asked, granted=asked)


def test_appetite_stays_where_most_of_it_was_met() -> None:
    appetite = ClaimBatchSize(1000)
    appetite.adjust(requested=_INITIAL_BATCH, granted=_INITIAL_BATCH)
    assert not appetite.adjust(requested=2 * _INITIAL_BATCH, granted=2 * _INITIAL_BATCH - 1)
    assert appetite.limit(1000) == 2 * _INITIAL_BATCH


def test_few_free_slots_do_not_spoil_it() -> None:
    appetite = ClaimBatchSize(1000)
    appetite.adjust(requested=4 * _INITIAL_BATCH, granted=4 * _INITIAL_BATCH)
    assert not appetite.adjust(requested=appetite.limit(1), granted=1)
    assert appetite.limit(1000) == 8 * _INITIAL_BATCH


def test_who_asked_for_nothing_learned_nothing() -> None:
    appetite = ClaimBatchSize(1000)
    assert not appetite.adjust(requested=0, granted=0)
    assert appetite.limit(1000) == _INITIAL_BATCH
