from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron.core import jobspec, retry_policy
from workron.core.states import Reason

SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Chance:
    """Chance that always answers the same."""

    value: float

    def random(self) -> float:
        return self.value

    def getrandbits(self, k: int, /) -> int:
        return int(self.value * 2**k)


def is_retry(
    body: dict[str, object],
    *,
    failures: int = 0,
    exit_code: int | None = 1,
    reason: Reason | None = Reason.EXIT_CODE,
) -> bool:
    command = jobspec.read({"command": "x", **body})
    chance = Chance(0.5)
    delay = retry_policy.decide(
        command, failures=failures, exit_code=exit_code, reason=reason, rng=chance
    )
    return delay is not None


def wait(body: dict[str, object], failures: int, chance: float) -> timedelta:
    command = jobspec.read({"command": "x", "maxAttempts": failures + 2, **body})
    delay = retry_policy.decide(
        command, failures=failures, exit_code=1, reason=Reason.EXIT_CODE, rng=Chance(chance)
    )
    assert delay is not None
    return delay


@given(st.integers(1, 100))
def test_decide_grants_as_many_tries_as_max_attempts_says(limit: int) -> None:
    granted = [
        failures for failures in range(102) if is_retry({"maxAttempts": limit}, failures=failures)
    ]

    assert granted == list(range(limit - 1))


@pytest.mark.parametrize(
    ("body", "exit_code", "expected"),
    [
        ({}, 1, True),
        ({"failOn": [64]}, 64, False),
        ({"failOn": [64]}, 65, True),
        ({"retryOn": [75]}, 75, True),
        ({"retryOn": [75]}, 1, False),
        ({"retryOn": [75], "failOn": [64]}, 64, False),
        ({"retryOn": [75], "failOn": [64]}, 1, False),
    ],
)
def test_decide_obeys_the_lists_of_exit_codes(
    body: dict[str, object], exit_code: int, *, expected: bool
) -> None:
    assert is_retry(body, exit_code=exit_code) is expected


@pytest.mark.parametrize("exit_code", [None, 64, 75])
@pytest.mark.parametrize(
    ("body", "expected"), [({}, True), ({"failOn": [64]}, True), ({"retryOn": [75]}, False)]
)
def test_decide_takes_a_timeout_as_an_exit_code_that_is_in_no_list(
    body: dict[str, object], exit_code: int | None, *, expected: bool
) -> None:
    assert is_retry(body, exit_code=exit_code, reason=Reason.TIMEOUT) is expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (Reason.EXIT_CODE, True),
        (Reason.SIGNAL, True),
        (Reason.TIMEOUT, True),
        (Reason.OUT_OF_MEMORY, True),
        (Reason.COMMAND_NOT_FOUND, False),
        (Reason.INPUTS_TOO_LARGE, False),
        (Reason.RESULT_REFUSED, False),
        (Reason.DEADLINE_EXCEEDED, False),
    ],
)
def test_decide_tries_again_only_what_may_end_otherwise(reason: Reason, *, expected: bool) -> None:
    assert is_retry({}, exit_code=None, reason=reason) is expected


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 1), (1, 2), (2, 4), (8, 256), (9, 300), (98, 300)]
)
def test_the_wait_doubles_up_to_the_longest(failures: int, seconds: int) -> None:
    assert wait({}, failures, 0.0) == timedelta(seconds=seconds / 2)
    assert wait({}, failures, 0.5) == timedelta(seconds=seconds * 0.75)


@given(
    st.integers(0, 98),
    st.sampled_from(["0s", "1ms", "1s", "87600h"]),
    st.floats(1, 100),
    st.floats(0, 1, exclude_max=True),
)
def test_the_wait_is_between_half_and_whole_whatever_is_asked(
    failures: int, initial: str, factor: float, chance: float
) -> None:
    backoff = {"initial": initial, "factor": factor, "max": "10m"}
    whole = wait({"backoff": backoff}, failures, 0.0) * 2

    assert whole <= timedelta(minutes=10)
    # Twice what was rounded to a microsecond may be one too little.
    assert whole / 2 <= wait({"backoff": backoff}, failures, chance) <= whole + timedelta.resolution


def test_the_wait_is_the_longest_when_the_sum_is_beyond_all_clocks() -> None:
    backoff = {"initial": "87600h", "factor": 100.0, "max": "10m"}

    assert wait({"backoff": backoff}, 98, 0.0) == timedelta(minutes=5)
