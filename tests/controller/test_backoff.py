"""What has failed waits twice as long each time, and no longer than its bound."""

from workron_controller.kube.backoff import Backoff


def test_each_failure_waits_twice_as_long_up_to_a_bound() -> None:
    backoff = Backoff(first=1, longest=5)
    assert [backoff.more() for _ in range(5)] == [1, 2, 4, 5, 5]


def test_success_begins_anew() -> None:
    backoff = Backoff(first=1, longest=5)
    for _ in range(3):
        backoff.more()
    backoff.reset()
    assert backoff.more() == 1
