"""Rules of migrations: which are pending, and which schemas are rejected."""

from importlib import resources
from pathlib import Path

import pytest

from workron.core import errors
from workron.store import migrations
from workron.store.migrations import Applied, Migration


def _known(count: int) -> list[Migration]:
    return [
        Migration(number, f"{number:04}_step.sql", "", f"sum{number}", is_compatible=True)
        for number in range(1, count + 1)
    ]


def _applied(count: int, *, is_compatible: bool = True) -> list[Applied]:
    return [Applied(one.number, one.name, one.checksum, is_compatible) for one in _known(count)]


def test_all_is_pending_when_the_database_is_new() -> None:
    assert migrations.pending_migrations(_known(3), []) == _known(3)


def test_nothing_is_pending_when_all_is_applied() -> None:
    assert migrations.pending_migrations(_known(3), _applied(3)) == []


def test_remaining_migrations_are_pending_in_order() -> None:
    assert migrations.pending_migrations(_known(4), _applied(2)) == _known(4)[2:]


def test_changed_file_is_rejected_by_name() -> None:
    applied = [*_applied(1), Applied(2, "0002_step.sql", "other", is_compatible=True)]
    with pytest.raises(errors.SchemaError, match=r"0002_step\.sql"):
        migrations.pending_migrations(_known(3), applied)


def test_schema_that_is_one_newer_is_accepted_when_it_is_compatible() -> None:
    assert migrations.pending_migrations(_known(2), _applied(3)) == []


def test_schema_that_is_one_newer_is_rejected_when_it_is_not_compatible() -> None:
    applied = [*_applied(2), *_applied(3, is_compatible=False)[2:]]
    with pytest.raises(errors.SchemaError, match="version 3 and this program knows 2"):
        migrations.pending_migrations(_known(2), applied)


def test_schema_that_is_two_newer_is_rejected() -> None:
    with pytest.raises(errors.SchemaError, match="version 4 and this program knows 2"):
        migrations.pending_migrations(_known(2), _applied(4))


def test_gap_in_the_applied_migrations_is_rejected() -> None:
    with pytest.raises(errors.SchemaError, match="1, 3"):
        migrations.pending_migrations(_known(3), [_applied(3)[0], _applied(3)[2]])


def _write(folder: Path, *names: str, header: str = "-- compatible: yes\n") -> Path:
    for name in names:
        (folder / name).write_text(header)
    return folder


def test_files_are_read_in_order_of_their_numbers(tmp_path: Path) -> None:
    _write(tmp_path, "0002_b.sql", "0001_c.sql", "0003_a.sql")
    assert [one.number for one in migrations.read_migrations(tmp_path)] == [1, 2, 3]


def test_header_says_whether_the_older_program_still_works(tmp_path: Path) -> None:
    _write(tmp_path, "0001_a.sql")
    _write(tmp_path, "0002_b.sql", header="-- compatible: no\n")
    assert [one.is_compatible for one in migrations.read_migrations(tmp_path)] == [True, False]


def test_checksum_changes_with_the_text(tmp_path: Path) -> None:
    (before,) = migrations.read_migrations(_write(tmp_path, "0001_a.sql"))
    (after,) = migrations.read_migrations(
        _write(tmp_path, "0001_a.sql", header="-- compatible: yes\n--\n")
    )
    assert before.checksum != after.checksum


@pytest.mark.parametrize("names", [["0002_a.sql"], ["0001_a.sql", "0001_b.sql"], ["1_a.sql"]])
def test_files_are_rejected_when_their_numbers_have_a_gap(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(errors.SchemaError, match=r"0001|numbered"):
        migrations.read_migrations(_write(tmp_path, *names))


def test_file_without_a_header_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(errors.SchemaError, match="compatible"):
        migrations.read_migrations(_write(tmp_path, "0001_a.sql", header="CREATE TABLE t (a);\n"))


def test_own_files_are_valid() -> None:
    assert migrations.read_migrations(resources.files("workron.store.sqlite") / "migrations")
