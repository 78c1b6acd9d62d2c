"""The SQL files: every statement has a name, a reason, a caller, and compiles."""

import re
import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from workron.core import states
from workron.core.states import Event, State
from workron.store.sqlite import connection

_ROOM = Path(str(resources.files("workron.store.sqlite")))
_FILES = sorted(path.stem for path in (_ROOM / "sql").glob("*.sql"))
_SOURCES = {path.name: path.read_text() for path in _ROOM.glob("*.py")}
_NAMES = [f"{file}.{name}" for file in _FILES for name in connection.statements_in(file)]
_CALLED_WHOLE = {"scratch", "clear_scratch"}

VERBS = [
    *("register", "heartbeat", "claim", "complete", "release", "append_output", "deregister"),
    *("submit", "cancel", "suspend", "resume", "ensure_pool"),
    *(
        "elect",
        "resign",
        "list_heartbeats",
        "reap",
        "drain",
        "reap_orphans",
        "promote",
        "propagate",
        "expire",
    ),
    *(
        "audit",
        "find_run",
        "list_runs",
        "list_jobs",
        "list_specs",
        "list_blockers",
        "list_attempts",
        "read_output",
    ),
    *("read_output_chunks", "read_result", "count_states"),
]


def _transitions(file: str) -> Iterator[tuple[str, str, str]]:
    header = (_ROOM / "sql" / f"{file}.sql").read_text().partition("-- name:")[0]
    yield from re.findall(r"^-- (\w+) -> (\w+) \((\w+)\)$", header, re.MULTILINE)


def _called() -> list[re.Pattern[str]]:
    """Give what the modules call: whole names, and f-strings as patterns."""
    literals = {
        name for text in _SOURCES.values() for name in re.findall(r'"([\w{}]+\.[\w{}]+)"', text)
    }
    return [re.compile(re.sub(r"\{.+?\}", r"\\w+", name.replace(".", r"\."))) for name in literals]


@pytest.mark.parametrize("verb", VERBS)
def test_verb_has_a_file_of_its_name(verb: str) -> None:
    assert verb in _FILES


@pytest.mark.parametrize("file", _FILES)
def test_file_says_at_its_top_what_it_does(file: str) -> None:
    text = (_ROOM / "sql" / f"{file}.sql").read_text()
    assert text.startswith(f"-- {file}: ")


@pytest.mark.parametrize("file", _FILES)
def test_transitions_of_a_file_are_in_the_table(file: str) -> None:
    for before, after, event in _transitions(file):
        assert states.TRANSITIONS[State(before), Event(event)] is State(after)


def test_every_transition_of_the_table_is_made_by_some_file() -> None:
    made = {(State(a), Event(e)) for file in _FILES for a, _, e in _transitions(file)}
    assert made == set(states.TRANSITIONS)


@pytest.mark.parametrize("name", _NAMES)
def test_statement_gives_its_reason_first(name: str) -> None:
    assert re.match(r"-- [A-Z].+", connection.statement_text(name))


@pytest.mark.parametrize("name", _NAMES)
def test_statement_compiles(bare: sqlite3.Connection, name: str) -> None:
    text = connection.statement_text(name)
    if name.startswith("scratch."):
        return
    values = dict.fromkeys(re.findall(r":(\w+)", text), "[]")
    bare.execute(f"EXPLAIN {text}", ["[]"] * text.count("?") if "?" in text else values)


@pytest.mark.parametrize("name", [n for n in _NAMES if n.partition(".")[0] not in _CALLED_WHOLE])
def test_statement_is_called(name: str) -> None:
    assert any(pattern.fullmatch(name) for pattern in _called())


def test_every_statement_that_is_called_exists() -> None:
    text = "".join(_SOURCES.values())
    called = re.findall(r'\b(?:run|rows|row|fill|text|_list)\(\s*"(\w+\.\w+)"', text)
    assert set(called) <= set(_NAMES)
    assert called


def test_no_sql_stands_in_python() -> None:
    words = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE)\b")
    assert {name for name, text in _SOURCES.items() if words.search(text)} == set()
