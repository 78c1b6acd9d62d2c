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
class FixedRng:
    """A random generator that always returns the same number."""

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
    delay = retry_policy.decide(
        command, failures=failures, exit_code=exit_code, reason=reason, rng=FixedRng(0.5)
    )
    return delay is not None


def delay_of(body: dict[str, object], failures: int, random_number: float) -> timedelta:
    command = jobspec.read({"command": "x", "maxAttempts": failures + 2, **body})
    delay = retry_policy.decide(
        command,
        failures=failures,
        exit_code=1,
        reason=Reason.EXIT_CODE,
        rng=FixedRng(random_number),
    )
    assert delay is not None
    return delay


@given(st.integers(1, 100))
def test_failure_is_retried_until_max_attempts_have_failed(limit: int) -> None:
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
def test_failure_is_retried_according_to_its_exit_code(
    body: dict[str, object], exit_code: int, *, expected: bool
) -> None:
    assert is_retry(body, exit_code=exit_code) is expected


@pytest.mark.parametrize("exit_code", [None, 64, 75])
@pytest.mark.parametrize(
    ("body", "expected"), [({}, True), ({"failOn": [64]}, True), ({"retryOn": [75]}, False)]
)
def test_exit_code_is_ignored_when_the_attempt_timed_out(
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
def test_failure_is_retried_when_its_reason_may_pass(reason: Reason, *, expected: bool) -> None:
    assert is_retry({}, exit_code=None, reason=reason) is expected


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 1), (1, 2), (2, 4), (8, 256), (9, 300), (98, 300)]
)
def test_delay_doubles_up_to_the_maximum(failures: int, seconds: int) -> None:
    assert delay_of({}, failures, 0.0) == timedelta(seconds=seconds / 2)
    assert delay_of({}, failures, 0.5) == timedelta(seconds=seconds * 0.75)


@given(
    st.integers(0, 98),
    st.sampled_from(["0s", "1ms", "1s", "87600h"]),
    st.floats(1, 100),
    st.floats(0, 1, exclude_max=True),
)
def test_delay_is_between_half_and_all_of_the_backoff(
    failures: int, initial: str, factor: float, random_number: float
) -> None:
    backoff = {"initial": initial, "factor": factor, "max": "10m"}
    whole = delay_of({"backoff": backoff}, failures, 0.0) * 2

    assert whole <= timedelta(minutes=10)
    # Doubling a delay that was rounded to a microsecond may lose one.
    assert (
        whole / 2
        <= delay_of({"backoff": backoff}, failures, random_number)
        <= whole + timedelta.resolution
    )


def test_delay_is_the_maximum_when_the_backoff_overflows() -> None:
    backoff = {"initial": "87600h", "factor": 100.0, "max": "10m"}

    assert delay_of({"backoff": backoff}, 98, 0.0) == timedelta(minutes=5)
