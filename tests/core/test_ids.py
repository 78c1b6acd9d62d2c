from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from workron.core import ids

MOMENTS = st.datetimes(datetime(2025, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(MOMENTS, st.timedeltas(timedelta(milliseconds=1), timedelta(days=1)), st.integers())
def test_mint_base_rises_with_time(moment: datetime, later: timedelta, seed: int) -> None:
    rng = random.Random(seed)
    first = ids.mint_base(moment, rng)
    second = ids.mint_base(moment + later, rng)

    assert 0 <= first < second < 2**63


@given(st.integers())
def test_mint_uuid_returns_different_random_uuids(seed: int) -> None:
    rng = random.Random(seed)
    one, two = ids.mint_uuid(rng), ids.mint_uuid(rng)

    assert one != two
    assert one.version == 4


@given(MOMENTS, st.timedeltas(timedelta(milliseconds=1), timedelta(days=1)), st.integers())
def test_mint_claims_rise_with_time(moment: datetime, later: timedelta, seed: int) -> None:
    rng = random.Random(seed)
    first, second = (ids.mint_claims(now, rng, 3) for now in (moment, moment + later))

    assert len(set(first)) == 3
    assert max(first) < min(second)
