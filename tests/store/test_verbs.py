"""The SQL files of both dialects: a verb each, whose header says what it does to a job."""

import pathlib
import re

import pytest

import workron.store
from workron.core import states
from workron.store.api import Store

_ROOM = pathlib.Path(workron.store.__file__).parent
_DIALECTS = {
    dialect: {file.stem: file.read_text() for file in (_ROOM / dialect / "sql").glob("*.sql")}
    for dialect in ("postgres", "sqlite")
}
# What the verbs of a dialect share, or need because of what it is.
_PARTS = {
    "postgres": {
        *("now", "weigh", "state_of", "grant_worker", "pools", "inputs_of", "claimed", "take"),
        *("decide", "sum_arrivals", "take_out", "submit_reserve", "submit_bind", "hold_still"),
        *("refuse_cycle", "sweeps", "sweep_step", "sweep_cancel", "sweep_hold", "sweep_resume"),
        "sweep_priority",
        *("session", "settle_ends", "give_back", "prove_dead", "bury_older", "server"),
        *("pool_role", "is_worker", "role_name", "drop_role", "close_doors"),
        *("open_doors", "makes_room", "forget", "gather"),
        *("walk", "walk_all", "walk_on", "look_back", "mark", "set_mark", "pull_mark", "passed"),
        *("unread", "has_read", "pages"),
        *("result_size", "result_text", "refuse"),
    },
    "sqlite": {
        *("migrate", "scratch", "clear", "place", "end_claims", "leave_places", "sweep"),
        "prioritize",
        *("session", "settle_ends", "give_back", "prove_dead", "bury_older"),
    },
}
# A submission copies its rows between the two; whatever else the door does is one file.
_VERBS_IN_PARTS = {"postgres": {"submit": {"submit_reserve", "submit_bind"}}, "sqlite": {}}
_NO_SQL = {"close", "wait_for_work"}
_ARROW = re.compile(r"^-- (\w+) -> (\w+) \((\w+)\)$", re.MULTILINE)

_each_file = pytest.mark.parametrize(
    ("dialect", "verb"),
    [(dialect, verb) for dialect, files in _DIALECTS.items() for verb in sorted(files)],
)
_each_dialect = pytest.mark.parametrize("dialect", _DIALECTS)


def _methods() -> set[str]:
    return {
        name
        for protocol in Store.__mro__
        for name, member in vars(protocol).items()
        if callable(member) and not name.startswith("_")
    } - _NO_SQL


def _arrows(dialect: str, verb: str) -> list[tuple[str, str, str]]:
    return _ARROW.findall(_DIALECTS[dialect][verb])


def _header(text: str) -> str:
    """Join the comment that a file begins with, its arrows left out."""
    comment = re.match(r"(?:--[^\n]*\n)*", text)
    assert comment is not None
    return " ".join(_ARROW.sub("", comment[0]).replace("\n--", "").split())


@_each_file
def test_file_begins_with_its_verb_and_a_sentence(dialect: str, verb: str) -> None:
    assert re.fullmatch(rf"-- {verb}: [a-z].*\S\.", _header(_DIALECTS[dialect][verb]))


@_each_file
def test_transitions_of_a_verb_are_in_the_table(dialect: str, verb: str) -> None:
    for before, after, event in _arrows(dialect, verb):
        assert states.TRANSITIONS[states.State(before), states.Event(event)] == after


@_each_dialect
def test_every_transition_is_some_verbs(dialect: str) -> None:
    made = {arrow for verb in _DIALECTS[dialect] for arrow in _arrows(dialect, verb)}
    assert {(before, event) for before, _, event in made} == set(states.TRANSITIONS)


@_each_dialect
def test_every_method_of_a_store_has_its_file(dialect: str) -> None:
    parts = _VERBS_IN_PARTS[dialect]
    assert _methods() - set(parts) <= set(_DIALECTS[dialect])
    for files in parts.values():
        assert files <= _PARTS[dialect]


@_each_dialect
def test_every_file_is_a_method_or_a_part_with_a_name(dialect: str) -> None:
    assert set(_DIALECTS[dialect]) - _methods() == _PARTS[dialect]


def test_function_has_the_name_of_its_file() -> None:
    for verb, text in _DIALECTS["postgres"].items():
        names = re.findall(r"CREATE OR REPLACE FUNCTION workron\.(\w+)\(", text)
        assert names in ([], [verb])
