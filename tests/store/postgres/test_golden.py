"""The schema that `migrate` makes is the one that was reviewed, and its functions are numbered.

After a change on purpose: python -m tests.store.postgres.golden
"""

import asyncpg

from tests.store.postgres import golden
from workron.store.postgres import functions

_OLD, _OTHER, _NEW = ("a" * 64, "b" * 64, "c" * 64)


async def test_schema_is_the_golden_one(fresh_database: str) -> None:
    connection = await asyncpg.connect(fresh_database)
    schema = await golden.dump(connection)
    await connection.close()
    assert schema.splitlines() == golden.FILE.read_text().splitlines()


def test_functions_have_the_number_that_was_given_to_this_very_text() -> None:
    edition = golden.FUNCTIONS.read_text().splitlines()[0]
    assert edition.split()[1] == functions.functions_digest()


async def test_functions_that_the_program_calls_are_written_down(fresh_database: str) -> None:
    connection = await asyncpg.connect(fresh_database)
    called = await golden.called(connection)
    await connection.close()
    assert golden.FUNCTIONS.read_text().splitlines()[1:] == called
    assert any(signature.startswith("heartbeat(uuid)") for signature in called)
    assert not any(signature.startswith("propagate_ends") for signature in called)


def test_number_is_raised_when_the_text_changed_and_only_then() -> None:
    assert golden.numbered(f"7 {_OLD}\nbeat(uuid) returns void\n", _OLD) == f"7 {_OLD}"
    assert golden.numbered(f"7 {_OLD}\nbeat(uuid) returns void\n", _NEW) == f"8 {_NEW}"


def test_number_is_above_those_of_both_branches_that_meet_in_a_conflict() -> None:
    written = f"<<<<<<< HEAD\n7 {_OLD}\n=======\n8 {_OTHER}\n>>>>>>> other\n"
    assert golden.numbered(written, _NEW) == f"9 {_NEW}"
