"""The schema that `migrate` makes is the one that was reviewed."""

import asyncpg

from tests.store.postgres import golden


async def test_schema_is_the_golden_one(fresh_database: str) -> None:
    connection = await asyncpg.connect(fresh_database)
    schema = await golden.dump(connection)
    await connection.close()
    # After a change on purpose: python -m tests.store.postgres.golden
    assert schema.splitlines() == golden.FILE.read_text().splitlines()
