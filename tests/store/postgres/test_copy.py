"""The text of COPY that a submission sends is read by the server as the original values."""

import asyncio
import io
import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.behaviour import plans
from tests.store.behaviour.plans import task
from tests.store.postgres.stage import Stage
from workron.core import errors, payloads
from workron.store.postgres import copy

_TABLE: Final = """
    CREATE TEMPORARY TABLE copied (
        destination integer, text text, number bigint, flag boolean, moment timestamptz, uid uuid
    )"""
_ODD: Final = ["\\N", "\\.", "", "\t", "\r\n", "\\", "\\\\n", "\\x41", "\u2028", "\U0001f9ea"]

_NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)

_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_zones = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone)
_since = st.timedeltas(timedelta(days=-700_000), timedelta(days=2_900_000))
_moments = st.builds(
    lambda since, zone: (datetime(2000, 1, 1, tzinfo=UTC) + since).astimezone(zone), _since, _zones
)
_rows = st.tuples(
    st.none() | _texts | st.sampled_from(_ODD) | st.lists(st.sampled_from(_ODD)).map("".join),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.booleans(),
    st.none() | _moments,
    st.none() | st.uuids(),
)


def test_row_is_read_back_unchanged(fresh_database: str) -> None:
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(fresh_database))
        runner.run(connection.execute(_TABLE))

        @given(st.lists(_rows))
        def agrees(rows: Sequence[tuple[Any, ...]]) -> None:
            assert runner.run(_round(connection, rows)) == list(rows)

        agrees()
        runner.run(connection.close())


async def _round(
    connection: asyncpg.Connection, rows: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    lines = [copy.copy_line(place, *row) for place, row in enumerate(rows)]
    await connection.execute("TRUNCATE copied")
    await connection.copy_to_table("copied", source=io.BytesIO("".join(lines).encode()))
    found = await connection.fetch("SELECT * FROM copied ORDER BY destination")
    return [tuple(row)[1:] for row in found]


@pytest.mark.parametrize("text", [*_ODD, "x" * 253], ids=ascii)
async def test_job_is_stored_with_any_name_and_item(stage: Stage, text: str) -> None:
    await stage.submit(plans.dag("flow", **{text: task(items=[text, [text]])}))
    rows = await stage.sql.fetch(
        "SELECT name, item FROM workron.job WHERE group_condition = 'Member' ORDER BY index"
    )
    items = payloads.to_json(text), payloads.to_json([text])
    assert [tuple(row) for row in rows] == [(text, item) for item in items]


async def test_only_tables_with_rows_are_copied(stage: Stage) -> None:
    await stage.sql.execute("CREATE TABLE workron.first (n bigint)")
    await stage.sql.execute("CREATE TABLE workron.last (n bigint)")
    many = 500_000
    tables = [
        ("first", ("n",), (f"{n}\n" for n in range(many))),
        ("nowhere", ("n",), ()),
        ("last", ("n",), ["1\n"]),
    ]
    async with stage.sql.transaction():
        await copy.copy_tables(stage.sql, tables)
    assert await stage.sql.fetchval("SELECT sum(n) FROM workron.first") == many * (many - 1) // 2
    assert await stage.sql.fetchval("SELECT sum(n) FROM workron.last") == 1


async def test_copy_ends_when_a_row_cannot_be_formatted(stage: Stage) -> None:
    await stage.sql.execute("CREATE TABLE workron.first (n bigint)")

    def rows() -> Iterator[str]:
        yield from ("1\n" for _ in range(100_000))
        raise errors.StoreDataError("there is no more")

    with pytest.raises(errors.StoreDataError, match="there is no more"):
        async with stage.sql.transaction():
            await copy.copy_tables(stage.sql, [("first", ("n",), rows())])
    assert not await stage.sql.fetchval("SELECT count(*) FROM workron.first")


async def test_event_loop_runs_when_a_batch_of_rows_is_formatted(stage: Stage) -> None:
    await stage.sql.execute("CREATE TABLE workron.first (n bigint)")
    turns, seen = itertools.count(), []

    async def advance() -> None:
        while True:
            seen.append(next(turns))
            await asyncio.sleep(0)

    def rows() -> Iterator[str]:
        for _ in range(5):
            before = len(seen)
            yield "1\n" * 10_000
            assert len(seen) > before

    other = asyncio.create_task(advance())
    async with stage.sql.transaction():
        await copy.copy_tables(stage.sql, [("first", ("n",), rows())])
    other.cancel()
    assert await stage.sql.fetchval("SELECT count(*) FROM workron.first") == 50_000


async def test_submission_queries_no_types_when_the_session_is_new(stage: Stage) -> None:
    submitter = await stage.actor()
    await submitter.submit([plans.dag(a=task())])
    asked = await submitter.connection.fetch("SELECT statement FROM pg_prepared_statements")
    assert any("submit_link_runs" in row["statement"] for row in asked)
    assert not [row["statement"] for row in asked if "pg_type" in row["statement"]]
