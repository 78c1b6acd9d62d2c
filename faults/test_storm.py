"""The storm: all faults for `--minutes`, and a check of the store afterwards."""

import pytest

from faults.harness import FaultHarness
from faults.storm import KILLS_A_MINUTE, WORKERS, Storm, report

_KILLS = ("kill agent", "kill runner", "kill job")


@pytest.mark.storm
def test_no_job_is_lost_or_accepted_twice_when_faults_are_random(
    harness: FaultHarness, summary: list[str], request: pytest.FixtureRequest
) -> None:
    minutes = request.config.getoption("minutes")
    seed = request.config.getoption("randomly_seed")
    storm = Storm(harness, seed)
    storm.run(minutes)
    summary += report(storm, harness, minutes=minutes, seed=seed, workers=WORKERS)
    assert harness.check().errors == []
    assert storm.unexpected_exits == []
    assert set(harness.rows("state")) == {("Succeeded",)}
    assert sum(storm.injected[one] for one in _KILLS) >= 0.8 * KILLS_A_MINUTE * minutes
