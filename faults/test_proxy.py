"""The proxy does what it is for: it knows a verb's call, and the moment before and after it."""

import asyncio
from collections.abc import Callable

import asyncpg
import pytest

from faults.harness import FaultHarness
from faults.proxy import Line, Moment

_CALL = "SELECT workron.ensure_pool('default', $1, 'some token', 2)"


async def _call_twice(dsn: str) -> None:
    """Call as clients do: a statement is parsed once, and bound under its name afterwards."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SELECT 1")
        await connection.execute(_CALL.replace("$1", "'simple'"))
        await connection.fetch(_CALL.replace("some", "other"), "prepared")
    finally:
        connection.terminate()


def _count(harness: FaultHarness) -> int:
    return int(harness.value("SELECT count(*) FROM workron.pool"))


@pytest.mark.parametrize(("moment", "committed"), [(Moment.BEFORE, 0), (Moment.AFTER, 1)])
def test_deed_is_done_before_or_after_the_commit(
    harness: FaultHarness, moment: Moment, committed: int
) -> None:
    proxy = harness.proxy()
    reached = proxy.at(moment, "ensure_pool", Line.cut)
    with pytest.raises((asyncpg.PostgresConnectionError, ConnectionError)):
        asyncio.run(_call_twice(proxy.dsn))
    assert reached.is_set()
    assert _count(harness) == committed


def test_deed_waits_for_the_second_call_when_the_first_was_another_verb(
    harness: FaultHarness,
) -> None:
    proxy = harness.proxy()
    reached = proxy.at(Moment.AFTER, "claim", Line.cut)
    asyncio.run(_call_twice(proxy.dsn))
    assert not reached.is_set()
    assert (_count(harness), proxy.answered["ensure_pool"]) == (2, 2)


@pytest.mark.parametrize("deed", [Line.hush, Line.cut])
def test_line_is_left_open_without_a_word_or_reset(
    harness: FaultHarness, deed: Callable[[Line], None]
) -> None:
    proxy = harness.proxy()
    reached = proxy.at(Moment.AMID, "ensure_pool", deed)
    error = (
        TimeoutError if deed is Line.hush else (asyncpg.PostgresConnectionError, ConnectionError)
    )
    with pytest.raises(error):
        asyncio.run(asyncio.wait_for(_call_twice(proxy.dsn), 1))
    assert reached.is_set()


def test_silent_proxy_answers_nobody_until_it_is_restored(harness: FaultHarness) -> None:
    proxy = harness.proxy()
    proxy.silence()
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(_call_twice(proxy.dsn), 0.5))
    proxy.restore()
    asyncio.run(_call_twice(proxy.dsn))
    assert _count(harness) == 2
