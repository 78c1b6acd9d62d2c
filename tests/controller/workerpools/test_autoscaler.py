"""How many workers a pool should have: what is to be done, and since when less is."""

from typing import Any

import pytest

from tests.controller.workerpools.observed_objects import spec
from workron_controller.workerpools import autoscaler
from workron_controller.workerpools.autoscaler import SCALE_DOWN_SECONDS, ScaleDownDelay


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
def test_workers_needed(fields: dict[str, Any], ready: int, running: int, needed: int) -> None:
    assert autoscaler.desired_replicas(spec(**fields), ready, running) == needed


def test_more_are_wanted_at_once_and_fewer_when_that_was_so_for_long() -> None:
    patience, one = ScaleDownDelay(0, now=0), spec()
    assert patience.desired(one, 5, now=1) == 5
    assert patience.desired(one, 2, now=2) == 5
    assert patience.desired(one, 0, now=3) == 5
    assert patience.desired(one, 0, now=1 + SCALE_DOWN_SECONDS) == 2
    assert patience.desired(one, 0, now=2 + SCALE_DOWN_SECONDS) == 0


def test_wave_after_wave_is_met_by_the_same_workers() -> None:
    patience, one = ScaleDownDelay(0, now=0), spec()
    waves = [
        patience.desired(one, 6 * (at % 2), now=at * SCALE_DOWN_SECONDS * 0.9) for at in range(10)
    ]
    assert set(waves[1:]) == {6}


def test_who_begins_takes_nothing_away_for_want_of_knowledge() -> None:
    patience = ScaleDownDelay(7, now=100)
    assert patience.desired(spec(), 0, now=101) == 7
    assert patience.desired(spec(), 0, now=100 + SCALE_DOWN_SECONDS) == 0


def test_number_that_somebody_wrote_is_meant_at_once() -> None:
    patience = ScaleDownDelay(7, now=0)
    assert patience.desired(spec(replicas=2), 2, now=1) == 2
    assert patience.desired(spec(), 0, now=2) == 2


def test_lower_limit_is_obeyed_at_once() -> None:
    patience = ScaleDownDelay(0, now=0)
    assert patience.desired(spec(), 10, now=1) == 10
    assert patience.desired(spec(maxReplicas=4), 4, now=2) == 4
