"""The SQL files of both dialects: one per method, with a header that lists its transitions."""

import pathlib
import re

import pytest

import workron.store
from workron.core import states
from workron.store.api import Store

_FOLDER = pathlib.Path(workron.store.__file__).parent
_DIALECTS = {
    dialect: {file.stem: file.read_text() for file in (_FOLDER / dialect / "sql").glob("*.sql")}
    for dialect in ("postgres", "sqlite")
}
# Files that are not a method of a store: shared by methods, or needed by one dialect.
_PARTS = {
    "postgres": {
        *("now", "server_start", "evaluate", "evaluate_array", "claimed_jobs"),
        *("claim_ready", "lock_session"),
        *("job_inputs", "result_size", "result_text", "reject_report"),
        *("propagate_ends", "resolve_waiting", "apply_pending_ends", "process_pending_ends"),
        *("requeue", "mark_worker_dead", "remove_from_queues"),
        *("submit_lock_names", "submit_link_runs", "lock_upstream", "reject_cycle"),
        *("ensure_pools", "ensure_pool_role", "pool_role_name", "grant_worker"),
        *("has_worker_rights", "list_excess_rights", "revoke_excess_rights"),
        *("bulk_update_step", "bulk_cancel", "bulk_suspend", "bulk_resume", "bulk_prioritize"),
        *("list_bulk_updates", "delete_run_step"),
        *("record_failed_runs", "cancel_failed_runs", "expire_runs"),
        *("lock_ready_jobs", "ready_before_start", "read_scan_start"),
        "count_rows_read",
        *("first_unread_page", "remember_read_pages"),
    },
    "sqlite": {
        *("migrate", "scratch", "clear_scratch", "enqueue", "end_claims", "leave_queues"),
        *("bulk_update", "bulk_prioritize", "find_session"),
        *("propagate_ends", "requeue", "mark_worker_dead", "reap_older_sessions"),
    },
}
# A submission copies its rows between the two. SQLite has no scan starts.
_METHODS_IN_PARTS: dict[str, dict[str, set[str]]] = {
    "postgres": {"submit": {"submit_lock_names", "submit_link_runs"}},
    "sqlite": {"refresh_scan_starts": set()},
}
_NO_SQL = {"close", "wait_for_work"}
_TRANSITION = re.compile(r"^-- (\w+) -> (\w+) \((\w+)\)$", re.MULTILINE)

_each_file = pytest.mark.parametrize(
    ("dialect", "name"),
    [(dialect, name) for dialect, files in _DIALECTS.items() for name in sorted(files)],
)
_each_dialect = pytest.mark.parametrize("dialect", _DIALECTS)


def _methods() -> set[str]:
    return {
        name
        for protocol in Store.__mro__
        for name, member in vars(protocol).items()
        if callable(member) and not name.startswith("_")
    } - _NO_SQL


def _transitions(dialect: str, name: str) -> list[tuple[str, str, str]]:
    return _TRANSITION.findall(_DIALECTS[dialect][name])


def _header(text: str) -> str:
    """Join the comment at the beginning of a file, without its transitions."""
    comment = re.match(r"(?:--[^\n]*\n)*", text)
    assert comment is not None
    return " ".join(_TRANSITION.sub("", comment[0]).replace("\n--", "").split())


@_each_file
def test_file_begins_with_its_name_and_a_sentence(dialect: str, name: str) -> None:
    assert re.fullmatch(rf"-- {name}: [a-z].*\S\.", _header(_DIALECTS[dialect][name]))


@_each_file
def test_transitions_of_a_file_are_in_the_table(dialect: str, name: str) -> None:
    for before, after, event in _transitions(dialect, name):
        assert states.TRANSITIONS[states.State(before), states.Event(event)] == after


@_each_dialect
def test_every_transition_is_made_by_a_file(dialect: str) -> None:
    made = {transition for name in _DIALECTS[dialect] for transition in _transitions(dialect, name)}
    assert {(before, event) for before, _, event in made} == set(states.TRANSITIONS)


@_each_dialect
def test_every_method_of_a_store_has_a_file(dialect: str) -> None:
    parts = _METHODS_IN_PARTS[dialect]
    assert _methods() - set(parts) <= set(_DIALECTS[dialect])
    for files in parts.values():
        assert files <= _PARTS[dialect]


@_each_dialect
def test_every_file_is_a_method_or_a_known_part(dialect: str) -> None:
    assert set(_DIALECTS[dialect]) - _methods() == _PARTS[dialect]


def test_function_has_the_name_of_its_file() -> None:
    for name, text in _DIALECTS["postgres"].items():
        names = re.findall(r"CREATE OR REPLACE FUNCTION workron\.(\w+)\(", text)
        assert names in ([], [name])
