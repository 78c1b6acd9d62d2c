"""The SQL files of SQLite: every statement has a name, a comment, a caller, and compiles."""

import re
import sqlite3
from importlib import resources
from pathlib import Path

import pytest

from workron.store import api
from workron.store.sqlite import connection

_FOLDER = Path(str(resources.files("workron.store.sqlite")))
_FILES = sorted(path.stem for path in (_FOLDER / "sql").glob("*.sql"))
_SOURCES = {path.name: path.read_text() for path in _FOLDER.glob("*.py")}
_CALLERS = [*_SOURCES.values(), Path(api.__file__).read_text()]
_NAMES = [
    file if statement == file else f"{file}.{statement}"
    for file in _FILES
    for statement in connection.statements_in(file)
]
_EXECUTED_AS_A_WHOLE = {"scratch", "clear_scratch"}


def _names_in_callers() -> list[re.Pattern[str]]:
    """List the names that Python code mentions; f-strings become patterns."""
    literals = {
        name
        for text in _CALLERS
        for name in re.findall(r'"(\w+(?:\.[\w{}]+)?|\{\w+\}\.\w+)"', text)
    }
    return [re.compile(re.sub(r"\{.+?\}", r"\\w+", name.replace(".", r"\."))) for name in literals]


@pytest.mark.parametrize("name", _NAMES)
def test_statement_begins_with_a_comment(name: str) -> None:
    expected = r"-- [A-Z].+" if "." in name else rf"-- {name}: .+"
    assert re.match(expected, connection.statement_text(name))


@pytest.mark.parametrize("name", _NAMES)
def test_statement_compiles(bare: sqlite3.Connection, name: str) -> None:
    text = connection.statement_text(name)
    if name.startswith("scratch."):
        return
    values = dict.fromkeys(re.findall(r":(\w+)", text), "[]")
    bare.execute(f"EXPLAIN {text}", ["[]"] * text.count("?") if "?" in text else values)


@pytest.mark.parametrize(
    "name", [name for name in _NAMES if name.partition(".")[0] not in _EXECUTED_AS_A_WHOLE]
)
def test_statement_is_called(name: str) -> None:
    assert any(pattern.fullmatch(name) for pattern in _names_in_callers())


def test_called_statements_exist() -> None:
    called = re.findall(
        r'\b(?:run|rows|row|fill|_rows|_list|_first|_change)\(\s*"(\w+(?:\.\w+)?)"',
        "".join(_CALLERS),
    )
    assert called
    assert set(called) <= set(_NAMES)


def test_cleared_tables_are_all_the_temporary_ones() -> None:
    assert set(connection.statements_in("clear_scratch")) == set(
        connection.statements_in("scratch")
    )


def test_python_code_has_no_sql() -> None:
    words = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE)\b")
    assert {name for name, text in _SOURCES.items() if words.search(text)} == set()
