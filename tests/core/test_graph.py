from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron.core import errors, graph

Tasks = dict[str, list[str]]


@st.composite
def dags(draw: st.DrawFn) -> Tasks:
    """Tasks by name, each with upstreams among those before it, then all in any order."""
    names = [f"task-{at}" for at in range(draw(st.integers(0, 20)))]
    tasks = {
        name: draw(st.lists(st.sampled_from(names[:at]), unique=True)) if at else []
        for at, name in enumerate(names)
    }
    return {name: tasks[name] for name in draw(st.permutations(names))}


def check(tasks: Tasks) -> list[str]:
    names = list(tasks)
    return [names[at] for at in graph.check(names, list(tasks.values()))]


def printed_cycle(error: errors.GraphError) -> list[str]:
    match = re.search(r"cycle: (.*);", str(error))
    assert match
    return match[1].split(" -> ")


@given(dags())
def test_check_orders_every_task_after_its_upstreams(tasks: Tasks) -> None:
    ordered = check(tasks)

    assert sorted(ordered) == sorted(tasks)
    place = {name: at for at, name in enumerate(ordered)}
    assert all(place[up] < place[name] for name, upstreams in tasks.items() for up in upstreams)


@given(dags().filter(lambda tasks: any(tasks.values())), st.data())
def test_check_prints_an_existing_cycle_when_an_edge_leads_back(
    tasks: Tasks, data: st.DataObject
) -> None:
    last = data.draw(st.sampled_from([name for name in tasks if tasks[name]]))
    first = ancestor_of(tasks, last, data)
    tasks[first] = [*tasks[first], last]

    with pytest.raises(errors.GraphError) as caught:
        check(tasks)

    cycle = printed_cycle(caught.value)
    assert cycle[0] == cycle[-1]
    assert len(set(cycle)) == len(cycle) - 1
    assert all(one in tasks[two] for one, two in itertools.pairwise(cycle))


def ancestor_of(tasks: Tasks, name: str, data: st.DataObject) -> str:
    for _ in range(data.draw(st.integers(1, 8))):
        if tasks[name]:
            name = data.draw(st.sampled_from(tasks[name]))
    return name


def test_check_returns_nothing_when_there_is_no_task() -> None:
    assert check({}) == []


def test_check_keeps_the_written_order_when_no_task_depends_on_another() -> None:
    assert check({"c": [], "a": [], "b": []}) == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("names", "upstreams", "message"),
    [
        (
            ["load", "clean", "load"],
            [[], [], []],
            "two tasks are named 'load': tasks[0] and tasks[2]; give one of them another name",
        ),
        (
            ["a", "b"],
            [[], ["b"]],
            "task 'b' (tasks[1]) depends on itself; remove that dependency",
        ),
        (
            ["extract", "load"],
            [[], ["extrat"]],
            (
                "task 'load' (tasks[1]) depends on 'extrat', which is not a task of this workflow;"
                " did you mean 'extract'?"
            ),
        ),
        (
            ["a", "b"],
            [[], ["warehouse"]],
            "task 'b' (tasks[1]) depends on 'warehouse', which is not a task of this workflow",
        ),
        (
            ["a", "b"],
            [[], ["a", "a"]],
            "task 'b' (tasks[1]) names 'a' twice under dependsOn; name each upstream once",
        ),
        (
            ["a", "b", "c"],
            [["c"], ["a"], ["b"]],
            (
                "these tasks depend on each other in a cycle: a -> b -> c -> a;"
                " remove one of these dependencies"
            ),
        ),
    ],
    ids=["duplicate name", "itself", "misspelt", "unknown", "named twice", "cycle"],
)
def test_check_names_the_mistake_and_its_place(
    names: list[str], upstreams: list[list[str]], message: str
) -> None:
    with pytest.raises(errors.GraphError) as caught:
        graph.check(names, upstreams)

    assert str(caught.value) == message


def test_check_prints_only_the_cycle_when_other_tasks_depend_on_it() -> None:
    tasks = {"before": [], "a": ["before", "b"], "b": ["a"], "behind": ["b"], "last": ["behind"]}

    with pytest.raises(errors.GraphError) as caught:
        check(tasks)

    assert sorted(set(printed_cycle(caught.value))) == ["a", "b"]


def test_check_prints_the_shortest_cycle_when_two_share_a_task() -> None:
    tasks = {"a": ["d"], "b": ["a"], "c": ["b", "a"], "d": ["c"]}

    with pytest.raises(errors.GraphError) as caught:
        check(tasks)

    assert printed_cycle(caught.value) == ["a", "c", "d", "a"]


def test_check_omits_the_middle_when_a_cycle_is_long() -> None:
    ring = [f"t{at}" for at in range(100_000)]

    with pytest.raises(errors.GraphError) as caught:
        graph.check(ring, [[ring[at - 1]] for at in range(len(ring))])

    cycle = printed_cycle(caught.value)
    assert len(cycle) == 13
    assert "(99989 more)" in cycle


def test_check_accepts_a_chain_of_100000_tasks() -> None:
    chain = [f"t{at}" for at in range(100_000)]

    ordered = graph.check(chain, [chain[max(at - 1, 0) : at] for at in range(len(chain))])

    assert ordered == list(range(100_000))
