"""Mermaid and Markdown made from the tables of states that the code uses.

`docs/generate.py` uses it, so that the reference cannot differ from the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workron.core import states, verdict
from workron.core.states import State
from workron.core.verdict import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_ASKED: Final = (Condition.SUCCEEDED, Condition.FAILED, Condition.FINISHED)
_ENDS: Final = tuple(state for state in State if state in states.TERMINAL_STATES)
_PASSING: Final = tuple(state for state in State if state not in states.TERMINAL_STATES)


def mermaid() -> str:
    """Draw the table of states; events between the same two states share an arrow."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (state, event), after in states.TRANSITIONS.items():
        arrows.setdefault((state, after), []).append(event)
    lines = ["stateDiagram-v2", f"    [*] --> {State.WAITING}: submit"]
    lines += [f"    {one} --> {two}: {', '.join(events)}" for (one, two), events in arrows.items()]
    lines += [f"    {state} --> [*]" for state in _ENDS]
    return "\n".join(lines)


def transitions(docs: Mapping[str, str]) -> str:
    """Tabulate each event, what it means, and the state after it; a dash: it cannot happen."""
    rows = [[f"`{event}`", docs[event], *_afters(event)] for event in states.Event]
    return table(["event", "meaning", *(f"when {before}" for before in _PASSING)], rows)


def meanings(docs: Mapping[str, str]) -> str:
    """Tabulate the states with what each means and the reasons that it may have."""
    rows = [[state, docs[state], _reasons(state)] for state in State]
    return table(["state", "meaning", "reasons"], rows)


def conditions() -> str:
    """Tabulate what each end of an upstream means for a job, for each `when`."""
    rows = [[state, *(_outcome(when, state) for when in _ASKED)] for state in _ENDS]
    return table(["the upstream ended", *(f"`when: {when}`" for when in _ASKED)], rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay rows out as a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _afters(event: states.Event) -> list[str]:
    return [states.TRANSITIONS.get((before, event), "-") for before in _PASSING]


def _reasons(state: State) -> str:
    allowed = states.REASONS.get(state, frozenset())
    return ", ".join(f"`{reason}`" for reason in states.Reason if reason in allowed) or "none"


def _outcome(when: Condition, state: State) -> str:
    reasons = [reason for reason in states.Reason if reason in states.REASONS.get(state, ())]
    if state is State.SKIPPED:
        carried = [verdict.END_STATES[verdict.evaluate(when, state, reason)] for reason in reasons]
        same = carried == [(State.SKIPPED, reason) for reason in reasons]
        return "Skipped, the same reason" if same else "go"
    outcome, reason = verdict.END_STATES[verdict.evaluate(when, state, None)]
    return "go" if outcome is State.SUCCEEDED else f"{outcome}, {reason}"
