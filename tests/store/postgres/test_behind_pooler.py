"""A store behind a pooler depends neither on a session nor on notifications.

The tests are those of the behaviour suite: one module or more for each kind of operation. With a
new connection for each call they show that no operation needs anything that an earlier statement
left in its session, and that polling finds all jobs. Only PgBouncer shows what a real pooler does
to prepared statements, transactions and errors. Most of their time is spent connecting, so only the
modules of `_ONCE` run without PgBouncer.
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
from tests.store.postgres import poolers

# They repeat most of the behaviour suite.
pytestmark = pytest.mark.slow

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
    metafunc.parametrize("database", kinds, indirect=True)


@pytest.fixture(scope="session")
def pooled_database(postgres_dsn: str, migrated_template: str) -> Iterator[str]:
    with copied_database(postgres_dsn, migrated_template) as dsn:
        yield dsn


@pytest.fixture
def database(request: pytest.FixtureRequest, pooled_database: str) -> PostgresUnderTest:
    if request.param == "pgbouncer":
        return poolers.PgBouncerHarness(pooled_database, request.getfixturevalue("bouncer"))
    return poolers.NewConnectionHarness(pooled_database)


@pytest.fixture
def _kept(database: PostgresUnderTest) -> PostgresUnderTest:
    """Return the database, whose PgBouncer serves all tests."""
    return database


@pytest.fixture
async def harness(database: PostgresUnderTest) -> AsyncIterator[Harness]:
    await database.clear()
    made = Harness(database, await database.open())
    try:
        yield made
        await made.check()
    finally:
        await made.close()
        await database.close()


@pytest.fixture
async def worker(harness: Harness) -> Worker:
    return await harness.worker()
