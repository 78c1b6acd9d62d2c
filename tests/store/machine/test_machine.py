"""A random walk on every store; WORKRON_EXAMPLES sets its length, and draws another walk."""

import os
from collections.abc import Callable

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.store.behaviour.databases import DatabaseUnderTest
from tests.store.machine.machine import StoreMachine

_ASKED = os.environ.get("WORKRON_EXAMPLES")
_EXAMPLES = {"memory": 100, "sqlite": 40, "postgresql": 30}


def _settings(dialect: str) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=int(_ASKED or _EXAMPLES[dialect]),
        stateful_step_count=50,
        derandomize=_ASKED is None,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


@pytest.mark.slow
# Hypothesis shortens a failing walk for up to five minutes.
@pytest.mark.timeout(0 if _ASKED else 900)
def test_store_agrees_with_the_oracle(
    dialect: str, make_database: Callable[[], DatabaseUnderTest]
) -> None:
    class Machine(StoreMachine):
        pass

    Machine.make_database = staticmethod(make_database)
    run_state_machine_as_test(Machine, settings=_settings(dialect))
