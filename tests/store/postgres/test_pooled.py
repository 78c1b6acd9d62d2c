"""The behaviour of a store behind a pooler: nothing hangs on a session, and nobody need listen.

The tests are those of the behaviour suite, collected here again: one module or more for each kind
of verb. Behind PgBouncer they prove what they say. Where each call has a connection of its own they
prove less: that no verb needs anything that an earlier statement left in its session, and that
polling alone finds all work. What they do not show there is what a real pooler does to prepared
statements, to transactions and to errors; and as connecting is most of their work, only the modules
of `_ONCE` run so.
"""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.store.behaviour import (
    test_cancel,
    test_claim,
    test_complete,
    test_elect,
    test_output,
    test_promote,
    test_reap,
    test_submit,
    test_suspend,
    test_worker,
)
from tests.store.behaviour.databases import PostgresUnderTest, copied_database
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.worker import Worker
from tests.store.postgres import pooler

_MODULES = [
    *(test_cancel, test_claim, test_complete, test_elect, test_suspend),
    *(test_output, test_promote, test_reap, test_submit, test_worker),
]
_ONCE = {
    module.__name__ for module in (test_claim, test_complete, test_elect, test_output, test_promote)
}
globals().update(
    {
        name: test
        for module in _MODULES
        for name, test in vars(module).items()
        if name.startswith("test_")
    }
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kinds = ["pgbouncer"]
    if metafunc.function.__module__ in _ONCE:
        kinds.append("a connection a call")
    metafunc.parametrize("ground", kinds, indirect=True)


@pytest.fixture(scope="session")
def pooled_database(postgres_dsn: str, migrated_template: str) -> Iterator[str]:
    with copied_database(postgres_dsn, migrated_template) as dsn:
        yield dsn


@pytest.fixture
def ground(request: pytest.FixtureRequest, pooled_database: str) -> PostgresUnderTest:
    if request.param == "pgbouncer":
        return pooler.PgBouncerGround(pooled_database, request.getfixturevalue("bouncer"))
    return pooler.OnceGround(pooled_database)


@pytest.fixture
async def harness(ground: PostgresUnderTest) -> AsyncIterator[Harness]:
    await ground.clear()
    made = Harness(ground, await ground.open())
    try:
        yield made
        await made.check()
    finally:
        await made.close()
        await ground.close()


@pytest.fixture
async def worker(harness: Harness) -> Worker:
    return await harness.worker()
