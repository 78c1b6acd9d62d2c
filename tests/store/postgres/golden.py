"""The schema as text, read from the catalog: what `migrate` created, for review.

`python -m tests.store.postgres.golden`, from the top of the repository, writes
`golden_schema.txt` from an embedded server, and test_golden.py compares it. Function bodies are not
part of it: they are files, and are installed again when they change. The same command raises the
number of the set of functions, in the package's `functions.txt`.
"""

import asyncio
import pathlib
import re
from itertools import groupby

import asyncpg

from tests import postgres_server
from workron.store import api, postgres
from workron.store.postgres import functions, schema

FILE = pathlib.Path(__file__).with_name("golden_schema.txt")
_ROOM = pathlib.Path(postgres.__file__).parent
FUNCTIONS = _ROOM / "functions.txt"

_NUMBERED = re.compile(r"^(\d+) ([0-9a-f]{64})$", re.MULTILINE)
_CALL = re.compile(r'\bworkron\.(\w+)\(|(?:call|_call_value|_step|_rows|_list|_first)\(\s*"(\w+)"')

_COLUMNS = """
    SELECT c.relname AS relation, a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
        || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
        || CASE WHEN a.attidentity = 'a' THEN ' identity' ELSE '' END
        || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') AS line
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'workron'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND NOT a.attisdropped
    ORDER BY c.relname, a.attnum
"""
_ABOUT_TABLES = """
    SELECT c.relname AS relation, about.line
    FROM pg_class c CROSS JOIN LATERAL (
        SELECT 1 AS rank, format('with (%s)', array_to_string(c.reloptions, ', ')) AS line
        WHERE c.reloptions IS NOT NULL
        UNION ALL
        SELECT 2, format('constraint %s %s', k.conname, pg_get_constraintdef(k.oid))
        -- From version 18 on, columns that are not null have a row here too.
        FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype <> 'n'
        UNION ALL
        SELECT 3, 'index ' || i.relname
               || regexp_replace(pg_get_indexdef(i.oid), '^.* USING', ' USING')
        FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
        WHERE x.indrelid = c.oid AND NOT EXISTS (
            SELECT 1 FROM pg_constraint k WHERE k.conindid = x.indexrelid)
    ) about
    WHERE c.relnamespace = 'workron'::regnamespace AND c.relkind IN ('r', 'p')
    ORDER BY c.relname, about.rank, about.line COLLATE "C"
"""
_DOMAINS = """
    SELECT format('domain %s', t.typname) AS name,
           array_agg(format('%s %s %s', format_type(t.typbasetype, t.typtypmod), k.conname,
                            pg_get_constraintdef(k.oid)) ORDER BY k.conname) AS lines
    FROM pg_type t JOIN pg_constraint k ON k.contypid = t.oid
    WHERE t.typnamespace = 'workron'::regnamespace
    GROUP BY t.typname ORDER BY t.typname
"""
_FUNCTIONS = """
    SELECT format('function %s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) AS name,
           ARRAY['returns ' || pg_get_function_result(p.oid),
                 l.lanname || ' ' || CASE p.provolatile
                     WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END
                 || CASE WHEN p.prosecdef THEN ' security definer' ELSE '' END]
           || coalesce((SELECT array_agg('set ' || s ORDER BY s) FROM unnest(p.proconfig) s), '{}')
           || CASE WHEN p.proacl IS NULL OR EXISTS (
                  SELECT 1 FROM aclexplode(p.proacl) a WHERE a.grantee = 0)
              THEN ARRAY['executable by everybody'] ELSE '{}' END AS lines
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE p.pronamespace = 'workron'::regnamespace
    ORDER BY p.proname, pg_get_function_identity_arguments(p.oid) COLLATE "C"
"""


async def dump(connection: asyncpg.Connection) -> str:
    """Return the schema as text, the same on every version of PostgreSQL."""
    about: dict[str, list[str]] = {}
    for row in await connection.fetch(_ABOUT_TABLES):
        about.setdefault(row["relation"], []).append(row["line"])
    blocks = []
    columns = await connection.fetch(_COLUMNS)
    for table, rows in groupby(columns, key=lambda row: row["relation"]):
        lines = [row["line"] for row in rows] + about.get(table, [])
        blocks.append(_block(f"table {table}", lines))
    for kind in (_DOMAINS, _FUNCTIONS):
        blocks += [_block(row["name"], row["lines"]) for row in await connection.fetch(kind)]
    return "\n".join(blocks)


def _block(title: str, lines: list[str]) -> str:
    return "".join([f"{title}\n", *(f"    {line}\n" for line in lines)])


def numbered(written: str, digest: str) -> str:
    """Return the first line of `functions.txt`, with a higher number if its digest differs."""
    # Two branches may have raised it, and left a conflict with both lines.
    numbers = {known: int(number) for number, known in _NUMBERED.findall(written)}
    return f"{numbers.get(digest) or max(numbers.values(), default=0) + 1} {digest}"


def called_names() -> set[str]:
    """List the functions that the program itself calls."""
    texts = [file.read_text() for file in (*_ROOM.glob("*.py"), pathlib.Path(api.__file__))]
    texts += [file.read_text() for file in (_ROOM / "sql").glob("*.sql") if _is_query(file)]
    # `_call("claim", ...)`, `call("claim", 2)`, `_step("promote", ...)` or `workron.claim(...)`.
    names = {name for found in _CALL.findall("".join(texts)) for name in found if name}
    return names & {file.stem for file in (_ROOM / "sql").glob("*.sql") if not _is_query(file)}


async def called(connection: asyncpg.Connection) -> list[str]:
    """List the signatures of the functions that the program itself calls."""
    names = called_names()
    rows = await connection.fetch(functions.SIGNATURES)
    return [row["signature"] for row in rows if row["name"] in names]


def _is_query(file: pathlib.Path) -> bool:
    return "CREATE OR REPLACE FUNCTION" not in file.read_text()


async def _write(dsn: str) -> None:
    written = FUNCTIONS.read_text()
    # The digest depends on which functions are called; their signatures are known once installed.
    FUNCTIONS.write_text("".join(["0 0\n", *(f"{name}()\n" for name in sorted(called_names()))]))
    first = numbered(written, functions.functions_digest())
    await schema.migrate(dsn)
    connection = await asyncpg.connect(dsn)
    FILE.write_text(await dump(connection))
    FUNCTIONS.write_text("".join(f"{line}\n" for line in [first, *await called(connection)]))
    await connection.close()


if __name__ == "__main__":
    with postgres_server.running() as fresh:
        asyncio.run(_write(fresh))
