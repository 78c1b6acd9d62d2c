"""The proxy recognizes the call of a verb, and acts before and after it."""

import asyncio
from collections.abc import Callable

import asyncpg
import pytest

from faults.harness import FaultHarness
from faults.proxy import Moment, ProxyConnection

_CALL = "SELECT workron.ensure_pool('default', $1, 'some token', 2)"


async def _call_twice(dsn: str) -> None:
    """Call as clients do: a statement is parsed once and then bound by its name."""
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
def test_action_precedes_or_follows_the_commit(
    harness: FaultHarness, moment: Moment, committed: int
) -> None:
    proxy = harness.proxy()
    reached = proxy.at(moment, "ensure_pool", ProxyConnection.reset)
    with pytest.raises((asyncpg.PostgresConnectionError, ConnectionError)):
        asyncio.run(_call_twice(proxy.dsn))
    assert reached.is_set()
    assert _count(harness) == committed


def test_action_is_not_performed_when_another_verb_is_called(
    harness: FaultHarness,
) -> None:
    proxy = harness.proxy()
    reached = proxy.at(Moment.AFTER, "claim", ProxyConnection.reset)
    asyncio.run(_call_twice(proxy.dsn))
    assert not reached.is_set()
    assert (_count(harness), proxy.answered["ensure_pool"]) == (2, 2)


@pytest.mark.parametrize("action", [ProxyConnection.drop, ProxyConnection.reset])
def test_connection_is_half_open_or_reset_when_the_action_is_performed(
    harness: FaultHarness, action: Callable[[ProxyConnection], None]
) -> None:
    proxy = harness.proxy()
    reached = proxy.at(Moment.AMID, "ensure_pool", action)
    error = (
        TimeoutError
        if action is ProxyConnection.drop
        else (asyncpg.PostgresConnectionError, ConnectionError)
    )
    with pytest.raises(error):
        asyncio.run(asyncio.wait_for(_call_twice(proxy.dsn), 1))
    assert reached.is_set()


def test_calls_time_out_when_the_proxy_is_silenced(harness: FaultHarness) -> None:
    proxy = harness.proxy()
    proxy.silence()
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(_call_twice(proxy.dsn), 0.5))
    proxy.restore()
    asyncio.run(_call_twice(proxy.dsn))
    assert _count(harness) == 2
