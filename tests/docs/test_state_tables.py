from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import state_tables
from workron.core import states
from workron.core.states import Event, State

_PAGES = ("states.md", "manifest.md", "custom-resources.md", "command-line.md", "metrics.md")
DOCS = Path(__file__).parents[2] / "docs"


def generate(docs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(docs / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    shutil.copy(DOCS / "generate.py", tmp_path)
    return tmp_path


def arrows(drawn: str) -> Iterator[tuple[State, Event, State]]:
    for one, two, events in re.findall(r"(\w+) --> (\w+): ([a-z, ]+)", drawn):
        for event in events.split(", "):
            yield State(one), Event(event), State(two)


def test_diagram_has_every_transition_once() -> None:
    drawn = list(arrows(state_tables.mermaid().replace("[*] --> Waiting: submit", "")))

    assert sorted(drawn) == sorted((*way, after) for way, after in states.TRANSITIONS.items())


def test_diagram_ends_at_every_terminal_state() -> None:
    ends = re.findall(r"(\w+) --> \[\*\]", state_tables.mermaid())

    assert sorted(ends) == sorted(states.TERMINAL_STATES)


def test_transitions_have_a_row_for_every_event() -> None:
    rows = state_tables.transitions(dict.fromkeys(Event, "text")).splitlines()[2:]

    assert [row.split("`")[1] for row in rows] == list(Event)
    assert rows[1] == "| `suspend` | text | - | Waiting | Waiting |"


def test_conditions_have_a_row_for_every_end() -> None:
    assert state_tables.conditions().splitlines()[2:] == [
        "| Succeeded | go | Skipped, NotNeeded | go |",
        "| Failed | Skipped, UpstreamFailed | go | go |",
        "| Cancelled | Skipped, UpstreamCancelled | Skipped, NotNeeded | go |",
        "| Skipped | Skipped, the same reason | Skipped, the same reason | go |",
    ]


def test_every_state_and_event_has_a_description(docs: Path) -> None:
    generate(docs)

    page = (docs / "reference" / "states.md").read_text()
    assert all(f"| {state} | " in page for state in State)
    assert all(f"| `{event}` | " in page for event in Event)
    assert "|  |" not in page


def test_generated_pages_are_up_to_date() -> None:
    checked = generate(DOCS, "--check")

    assert checked.returncode == 0, checked.stderr


def test_check_names_the_page_when_it_is_out_of_date(docs: Path) -> None:
    generate(docs)
    page = docs / "reference" / "states.md"
    page.write_text(page.read_text().replace("Running", "Walking"))

    checked = generate(docs, "--check")

    assert checked.returncode == 1
    assert checked.stderr == f"{page} is not what the code says; run `make generate`\n"
    assert "Walking" in page.read_text()


def test_generate_prints_nothing_when_nothing_changed(docs: Path) -> None:
    wrote = generate(docs).stdout.splitlines()
    assert wrote == [f"wrote {docs / 'reference' / name}" for name in _PAGES]
    assert generate(docs).stdout == ""
