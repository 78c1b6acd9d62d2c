"""The storm: all at once, for as long as `--minutes` says, and then the books are checked."""

import pytest

from faults.harness import FaultHarness
from faults.storm import KILLS_A_MINUTE, WORKERS, Storm, report

_KILLS = ("kill agent", "kill runner", "kill job")


@pytest.mark.storm
def test_storm_loses_no_job_and_accepts_none_twice(
    harness: FaultHarness, told: list[str], request: pytest.FixtureRequest
) -> None:
    minutes = request.config.getoption("minutes")
    seed = request.config.getoption("randomly_seed")
    storm = Storm(harness, seed)
    storm.run(minutes)
    told += report(storm, harness, minutes=minutes, seed=seed, workers=WORKERS)
    assert harness.check().wrongs == []
    assert storm.deserters == []
    assert set(harness.rows("state")) == {("Succeeded",)}
    assert sum(storm.hits[one] for one in _KILLS) >= 0.8 * KILLS_A_MINUTE * minutes
