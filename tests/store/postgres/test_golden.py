"""The schema that `migrate` creates equals the reviewed one, and its functions have a number.

After an intended change: python -m tests.store.postgres.golden
"""

import asyncpg

from tests.store.postgres import golden
from workron.store.postgres import functions

_OLD, _OTHER, _NEW = ("a" * 64, "b" * 64, "c" * 64)


async def test_schema_equals_the_golden_file(fresh_database: str) -> None:
    connection = await asyncpg.connect(fresh_database)
    schema = await golden.dump(connection)
    await connection.close()
    assert schema.splitlines() == golden.FILE.read_text().splitlines()


def test_functions_have_the_recorded_number_and_digest() -> None:
    first = golden.FUNCTIONS.read_text().splitlines()[0]
    assert first.split()[1] == functions.functions_digest()


async def test_functions_that_the_program_calls_are_recorded(fresh_database: str) -> None:
    connection = await asyncpg.connect(fresh_database)
    called = await golden.called(connection)
    await connection.close()
    assert golden.FUNCTIONS.read_text().splitlines()[1:] == called
    assert any(signature.startswith("heartbeat(uuid)") for signature in called)
    assert not any(signature.startswith("propagate_ends") for signature in called)


def test_number_is_raised_only_when_the_text_changed() -> None:
    assert golden.numbered(f"7 {_OLD}\nbeat(uuid) returns void\n", _OLD) == f"7 {_OLD}"
    assert golden.numbered(f"7 {_OLD}\nbeat(uuid) returns void\n", _NEW) == f"8 {_NEW}"


def test_number_exceeds_both_when_two_branches_conflict() -> None:
    written = f"<<<<<<< HEAD\n7 {_OLD}\n=======\n8 {_OTHER}\n>>>>>>> other\n"
    assert golden.numbered(written, _NEW) == f"9 {_NEW}"
