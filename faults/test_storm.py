"""The storm: all at once, for as long as `--minutes` says, and then the books are checked."""

import pytest

from faults.house import House
from faults.storm import KILLS_A_MINUTE, WORKERS, Storm, report

_KILLS = ("kill agent", "kill runner", "kill job")


@pytest.mark.storm
def test_storm_loses_no_job_and_accepts_none_twice(
    house: House, told: list[str], request: pytest.FixtureRequest
) -> None:
    minutes = request.config.getoption("minutes")
    seed = request.config.getoption("randomly_seed")
    storm = Storm(house, seed)
    storm.run(minutes)
    told += report(storm, house, minutes=minutes, seed=seed, workers=WORKERS)
    assert house.check().wrongs == []
    assert storm.deserters == []
    assert set(house.rows("state")) == {("Succeeded",)}
    assert sum(storm.hits[one] for one in _KILLS) >= 0.8 * KILLS_A_MINUTE * minutes
