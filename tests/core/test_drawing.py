from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from workron.core import drawing
from workron.core.drawing import TaskBox
from workron.core.verdict import Condition

NEEDS = Condition.SUCCEEDED
DIAMOND = [
    TaskBox("extract"),
    TaskBox("clean", [("extract", NEEDS)], 10),
    TaskBox("check", [("extract", NEEDS)]),
    TaskBox("load", [("clean", NEEDS), ("check", NEEDS)]),
    TaskBox("alarm", [("load", Condition.FAILED)]),
]


def chain(length: int) -> list[TaskBox]:
    return [TaskBox(f"t{at}", [(f"t{at - 1}", NEEDS)] if at else []) for at in range(length)]


@st.composite
def dags(draw: st.DrawFn) -> list[TaskBox]:
    boxes: list[TaskBox] = []
    for at in range(draw(st.integers(1, 12))):
        earlier = st.sampled_from([box.name for box in boxes]) if boxes else st.nothing()
        upstreams = draw(st.lists(earlier, unique=True))
        boxes.append(TaskBox(f"t{at}", [(name, NEEDS) for name in upstreams]))
    return boxes


def test_tree_draws_downstreams_below_upstreams_and_marks_repeated_tasks() -> None:
    assert drawing.tree(DIAMOND).splitlines() == [
        "extract",
        "├── clean[0..9]",
        "│   └── load",
        "│       └── alarm (when Failed)",
        "└── check",
        "    └── load (shown above)",
    ]


def test_tree_marks_an_upstream_as_external_when_it_is_not_a_task() -> None:
    boxes = [TaskBox("report", [("nightly", Condition.FINISHED), ("load", NEEDS)]), TaskBox("load")]

    assert drawing.tree(boxes).splitlines() == [
        "nightly (external)",
        "└── report (when Finished)",
        "load",
        "└── report (shown above)",
    ]


def test_tree_shows_the_range_when_an_array_has_one_element() -> None:
    assert drawing.tree([TaskBox("only", (), 1)]) == "only[0]"


def test_tree_is_empty_when_there_is_no_task() -> None:
    assert drawing.tree([]) == ""


def test_tree_counts_hidden_tasks_when_it_is_cut_off() -> None:
    lines = drawing.tree(chain(100_000), lines=3).splitlines()

    assert lines == [
        "t0",
        "└── t1",
        "    └── t2",
        "(cut off after 3 lines; 99,997 tasks are not shown)",
    ]


@given(dags())
def test_tree_has_a_line_for_every_edge_and_every_root(boxes: list[TaskBox]) -> None:
    lines = drawing.tree(boxes).splitlines()

    assert len(lines) == sum(max(len(box.upstreams), 1) for box in boxes)
    assert sum("shown above" not in line for line in lines) == len(boxes)


@given(dags(), st.integers(1, 20))
def test_tree_has_at_most_the_given_lines(boxes: list[TaskBox], bound: int) -> None:
    assert len(drawing.tree(boxes, lines=bound).splitlines()) <= bound + 1


def test_mermaid_draws_every_task_and_every_edge_with_its_condition() -> None:
    assert drawing.mermaid(DIAMOND).splitlines() == [
        "flowchart LR",
        '    t0["extract"]',
        '    t1["clean[0..9]"]',
        '    t2["check"]',
        '    t3["load"]',
        '    t4["alarm"]',
        "    t0 --> t1",
        "    t0 --> t2",
        "    t1 --> t3",
        "    t2 --> t3",
        "    t3 -->|Failed| t4",
    ]


def test_mermaid_uses_generated_ids_when_a_task_is_named_like_a_keyword() -> None:
    drawn = drawing.mermaid([TaskBox("end"), TaskBox("graph", [("end", NEEDS), ("class", NEEDS)])])

    assert re.sub(r'"[^"]*"', "", drawn).split() == [
        *["flowchart", "LR", "t0[]", "t1[]", "t2[]"],
        *["t1", "-->", "t2", "t0", "-->", "t2"],
    ]
