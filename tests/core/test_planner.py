from __future__ import annotations

import functools
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron.core import errors, planner, trace_context
from workron.core.model.job import Job
from workron.core.model.workflow import Workflow, WorkflowSpec
from workron.core.plan import (
    Edge,
    ExternalDependency,
    Identity,
    Kind,
    Plan,
    PlannedJob,
    SchedulingTerms,
)
from workron.core.verdict import Condition
from workron.core.workflow_specs import WorkflowSpecs

UID = UUID("11111111-2222-4333-8444-55555555abcd")
Json = dict[str, Any]


def job(spec: Json, **metadata: object) -> Plan:
    return planner.plan_job(
        Job.parse(
            {
                "apiVersion": "workron.dev/v1alpha1",
                "kind": "Job",
                "metadata": {"name": "greet", **metadata},
                "spec": {"command": "echo", **spec},
            }
        ),
        UID,
    )


def workflow(*tasks: Json, **spec: object) -> Plan:
    return planner.plan_workflow(
        Workflow.parse(
            {
                "apiVersion": "workron.dev/v1alpha1",
                "kind": "Workflow",
                "metadata": {"name": "etl"},
                "spec": {"tasks": [{"command": f"run {task['name']}", **task} for task in tasks]}
                | spec,
            }
        ),
        UID,
    )


def bodies(plan: Plan) -> dict[int, Any]:
    return {number: json.loads(text) for number, text in plan.encode_specs()}


def after(*names: str, **how: object) -> list[Json]:
    return [{"name": name, **how} for name in names]


@st.composite
def tasks(draw: st.DrawFn) -> list[Json]:
    """Tasks in any order, arrays among them, some paired element by element."""
    made: list[Json] = []
    for at in range(draw(st.integers(1, 8))):
        task: Json = {"name": f"t{at}"} | draw(
            st.sampled_from([{}, {"count": 1}, {"count": 3}, {"items": ["a", "b", "c"]}])
        )
        upstreams = (
            draw(st.lists(st.sampled_from(made), unique_by=lambda t: t["name"])) if made else []
        )
        task["dependsOn"] = [draw(links(upstream, task)) for upstream in upstreams]
        made.append(task)
    return draw(st.permutations(made))


@st.composite
def links(draw: st.DrawFn, upstream: Json, task: Json) -> Json:
    pairs = size(upstream) == size(task) != 0
    return {
        "name": upstream["name"],
        "when": draw(st.sampled_from(["Succeeded", "Failed", "Finished"])),
        "each": draw(st.booleans()) and pairs,
    }


def size(task: Json) -> int:
    """Return the number of elements; 0 if it is not an array."""
    return int(task.get("count", len(task.get("items", []))))


@given(tasks())
def test_node_waits_for_its_edges_and_its_elements(made: list[Json]) -> None:
    plan = workflow(*made)

    ends = Counter(edge.downstream for edge in plan.edges)
    ends += Counter(node.group_id for node in plan.nodes if node.group_id is not None)
    assert [node.upstreams for node in plan.nodes] == [ends[at] for at in range(len(plan.nodes))]


@given(tasks())
def test_edges_lead_from_lower_to_higher_offsets_and_never_into_groups(made: list[Json]) -> None:
    plan = workflow(*made)

    assert len({(edge.upstream, edge.downstream) for edge in plan.edges}) == len(plan.edges)
    assert all(edge.upstream < edge.downstream for edge in plan.edges)
    assert {plan.nodes[edge.downstream].kind for edge in plan.edges} <= {Kind.JOB}
    assert 0 not in {edge.upstream for edge in plan.edges}


@given(tasks())
def test_task_becomes_one_job_or_a_group_with_its_elements(made: list[Json]) -> None:
    plan = workflow(*made)

    tops = {node.name: at for at, node in enumerate(plan.nodes) if node.group_id == 0}
    assert sorted(tops) == sorted(task["name"] for task in made)
    for task in made:
        at = tops[task["name"]]
        elements = [node for node in plan.nodes if node.group_id == at]
        assert elements == list(plan.nodes[at + 1 : at + 1 + size(task)])
        assert [node.index for node in elements] == list(range(size(task)))
        assert plan.nodes[at].kind == (Kind.ARRAY if size(task) else Kind.JOB)


@given(tasks())
def test_node_has_the_spec_of_its_task(made: list[Json]) -> None:
    plan = workflow(*made)

    specs = bodies(plan)
    assert len(specs) == len(plan.terms) == len(made) + 1
    for node in plan.nodes[1:]:
        assert specs[node.spec]["command"] == f"run {node.name}"


def test_run_comes_first_and_an_array_before_its_elements() -> None:
    plan = workflow(
        {"name": "load", "dependsOn": after("clean")},
        {"name": "extract"},
        {"name": "clean", "count": 2, "dependsOn": after("extract")},
    )

    job = functools.partial(PlannedJob, Kind.JOB)
    task: Json = {"group_id": 0, "group_condition": Condition.TASK}
    element: Json = {"group_id": 2, "group_condition": Condition.MEMBER, "feeds_inputs": True}
    assert plan.nodes == [
        PlannedJob(Kind.WORKFLOW, "etl", 0, upstreams=3),
        job("extract", 2, **task),
        PlannedJob(Kind.ARRAY, "clean", 3, upstreams=2, **task),
        job("clean", 3, index=0, upstreams=1, **element),
        job("clean", 3, index=1, upstreams=1, **element),
        job("load", 1, upstreams=1, feeds_inputs=True, **task),
    ]
    assert plan.edges == [Edge(1, 3), Edge(1, 4), Edge(2, 5)]
    assert plan.identity == Identity("default", Kind.WORKFLOW, "etl", UID)


def test_elements_are_paired_when_the_dependency_says_each() -> None:
    plan = workflow(
        {"name": "a", "count": 3},
        {"name": "b", "items": ["x", "y", "z"], "dependsOn": after("a", each=True, when="Failed")},
    )

    when = Condition.FAILED
    assert plan.edges == [Edge(2, 6, when), Edge(3, 7, when), Edge(4, 8, when)]


@pytest.mark.parametrize("size", [100, 10_000])
def test_each_element_waits_for_the_whole_array_when_arrays_depend_on_arrays(size: int) -> None:
    plan = workflow(
        {"name": "a", "count": size}, {"name": "b", "count": size, "dependsOn": after("a")}
    )

    assert len(plan.edges) == size
    assert {edge.upstream for edge in plan.edges} == {1}


@pytest.mark.parametrize("array", [{}, {"count": 2}])
def test_failure_of_a_task_counts_unless_the_task_allows_it(array: Json) -> None:
    plan = workflow(
        {"name": "risky", "allowFailure": True, **array},
        {"name": "plain", "allowFailure": False},
        {"name": "watch", "dependsOn": after("plain", when="Failed")},
    )

    assert {n.name: n.group_condition for n in plan.nodes if n.group_id == 0} == {
        "risky": Condition.ALLOWED_TASK,
        "plain": Condition.TASK,
        "watch": Condition.TASK,
    }


@pytest.mark.parametrize(
    ("given", "expected"), [(0, 0), (3, 3), ("0%", 0), ("5%", 2), ("99%", 48), ("100%", 49)]
)
def test_failures_of_an_array_are_allowed_by_number_or_part(
    given: int | str, expected: int
) -> None:
    plan = workflow({"name": "a", "count": 49, "maxFailures": given}, {"name": "b", "count": 2})

    assert [terms.max_failures for terms in plan.terms] == [None, expected, None]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            [
                {"name": "a", "count": 3},
                {"name": "b", "count": 4, "dependsOn": after("a", each=True)},
            ],
            (
                "task 'b' depends on each of 'a', which pairs two arrays of one length; but 'b'"
                " has 4 elements and 'a' has 3 elements"
            ),
        ),
        (
            [{"name": "a"}, {"name": "b", "count": 1, "dependsOn": after("a", each=True)}],
            (
                "task 'b' depends on each of 'a', which pairs two arrays of one length; but 'b'"
                " has 1 element and 'a' is not an array"
            ),
        ),
        (
            [{"name": "a", "dependsOn": after("b")}, {"name": "b", "dependsOn": after("a")}],
            (
                "these tasks depend on each other in a cycle: a -> b -> a; remove one of these"
                " dependencies"
            ),
        ),
        (
            [{"name": "a"}, {"name": "b", "dependsOn": [*after("a"), *after("a", when="Failed")]}],
            "task 'b' (tasks[1]) names 'a' twice under dependsOn; name each upstream once",
        ),
        (
            [{"name": "a"}, {"name": "a"}],
            "two tasks are named 'a': tasks[0] and tasks[1]; give one of them another name",
        ),
    ],
    ids=["lengths differ", "no array", "cycle", "named twice", "one name"],
)
def test_workflow_is_rejected_with_a_message_when_it_is_not_a_dag(
    made: list[Json], message: str
) -> None:
    with pytest.raises(errors.GraphError) as caught:
        workflow(*made)

    assert str(caught.value) == f"Workflow 'etl': {message}"


def test_workflow_is_rejected_when_it_has_too_many_edges() -> None:
    singles = [{"name": f"s{at}"} for at in range(300)]
    wide = {"name": "wide", "count": 10_000, "dependsOn": after(*(s["name"] for s in singles))}

    with pytest.raises(errors.GraphError) as caught:
        workflow(*singles, wide)

    assert str(caught.value) == (
        "Workflow 'etl': its dependencies are 3,000,000 edges; at most 2,000,000 are allowed."
        " 'wide' has the most, 10,000 x 300: let it depend on one task that depends on the others"
    )


def test_job_is_one_node_with_external_dependencies() -> None:
    plan = job(
        {
            "dependsOn": [
                {"name": "etl", "kind": "Workflow"},
                {"name": "other", "when": "Finished"},
            ],
            "priority": 7,
            "suspend": True,
        },
        namespace="team",
    )

    assert plan.identity == Identity("team", Kind.JOB, "greet", UID)
    assert plan.nodes == [PlannedJob(Kind.JOB, "greet", 0, upstreams=2, feeds_inputs=True)]
    assert plan.external == [
        ExternalDependency(0, Kind.WORKFLOW, "etl"),
        ExternalDependency(0, Kind.JOB, "other", Condition.FINISHED),
    ]
    assert (plan.priority, plan.is_suspended, plan.edges) == (7, True, ())


def test_job_is_rejected_when_it_depends_on_itself() -> None:
    with pytest.raises(errors.GraphError, match="Job 'greet' depends on itself"):
        job({"dependsOn": after("greet")})


def test_job_may_depend_on_a_workflow_with_the_same_name() -> None:
    plan = job({"dependsOn": after("greet", kind="Workflow")})

    assert plan.external == [ExternalDependency(0, Kind.WORKFLOW, "greet")]


def test_name_is_generated_from_prefix_and_uid_when_a_job_has_none() -> None:
    plan = job({}, name=None, generateName="greet-")

    assert plan.nodes[0].name == plan.identity.name == "greet-5abcd"


def test_terms_have_the_fields_that_the_store_acts_on() -> None:
    plan = job(
        {
            "pool": "gpu",
            "maxWorkerLosses": 2,
            "startAfter": "2030-01-02T03:04:05Z",
            "deadline": "1h30m",
            "overlap": "Forbid",
        }
    )

    assert plan.terms[0] == SchedulingTerms(
        pool="gpu",
        max_losses=2,
        start_after=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
        deadline_seconds=timedelta(hours=1, minutes=30).total_seconds(),
        needs_proof=True,
    )


def test_terms_are_the_defaults_when_the_spec_sets_none() -> None:
    assert job({}).terms[0] == SchedulingTerms()


def test_stored_spec_of_a_job_is_the_spec_as_written() -> None:
    spec = {"env": [{"name": "A", "value": "1"}], "timeout": "1m30s", "retryOn": [75]}

    assert bodies(job(spec)) == {0: {"command": "echo", **spec}}


def test_stored_spec_of_a_task_omits_the_fields_stored_as_rows() -> None:
    plan = workflow(
        {"name": "a"}, {"name": "b", "items": ["x", 2], "timeout": "5m", "dependsOn": after("a")}
    )

    specs = bodies(plan)
    assert specs[0]["tasks"][1]["dependsOn"] == [{"name": "a"}]
    assert specs[2] == {"command": "run b", "timeout": "5m"}


@pytest.mark.parametrize("about", [{}, {"priority": 3, "suspend": False}], ids=str)
def test_stored_spec_of_a_workflow_has_all_tasks(about: Json) -> None:
    items = [1e22, 1e-7, -0.0, 2**62, True, '"tasks":[]', "\\u0000 \u2028 é"]
    made: list[Json] = [{"name": f"t{at}", "command": f"run {at}"} for at in range(450)]
    made[7] |= {"items": items, "dependsOn": after("t0", when="Failed"), "maxWorkerLosses": 6}
    spec = WorkflowSpec.parse({"tasks": made} | about)

    texts = dict(WorkflowSpecs(spec, spec.tasks).encode(None))

    expected = spec.as_manifest()
    expected.pop("suspend", None)
    assert json.loads(texts[0]) == expected
    assert texts[8] == '{"command":"run 7","maxWorkerLosses":6}'
    assert texts.keys() == set(range(451))
    assert all(texts[at + 1] == f'{{"command":"run {at}"}}' for at in range(450) if at != 7)


def test_tasks_get_the_traceparent_of_the_submission() -> None:
    own = {"name": "b", "env": [{"name": trace_context.TRACEPARENT, "value": "mine"}]}
    plan = workflow({"name": "a"}, own)

    specs = {number: json.loads(text) for number, text in plan.specs("theirs")}

    assert [trace_context.traceparent_of(specs[at]) for at in range(3)] == [None, "theirs", "mine"]
    assert specs[0] == bodies(plan)[0]


def test_job_gets_the_traceparent_of_the_submission() -> None:
    [(_, text)] = job({}).specs("theirs")

    assert trace_context.traceparent_of(json.loads(text)) == "theirs"


def test_elements_of_an_array_share_a_spec_and_have_their_own_items() -> None:
    plan = workflow({"name": "a", "items": ["x", 2, False]}, {"name": "b", "count": 2})

    elements = [
        (n.spec, n.index, n.item) for n in plan.nodes if n.group_condition is Condition.MEMBER
    ]
    assert elements == [(1, 0, "x"), (1, 1, 2), (1, 2, False), (2, 0, None), (2, 1, None)]


def test_metadata_is_kept_as_written() -> None:
    plan = job({}, labels={"team": "data"}, annotations={"note": "why"})

    assert plan.metadata == {"labels": {"team": "data"}, "annotations": {"note": "why"}}


@pytest.mark.parametrize(
    "edited",
    [
        {"suspend": True},
        {"cancel": True},
        {"priority": 9},
        {"ttlSecondsAfterFinished": 60},
        {"pool": "default", "maxAttempts": 3, "backoff": {"factor": 2}},
    ],
    ids=["suspend", "cancel", "priority", "ttl", "defaults"],
)
def test_digest_is_the_same_when_only_editable_fields_or_defaults_differ(edited: Json) -> None:
    assert job(edited).digest() == job({}).digest()


@pytest.mark.parametrize(
    "changed", [{"command": "other"}, {"pool": "gpu"}, {"dependsOn": after("other")}]
)
def test_digest_differs_when_the_content_differs(changed: Json) -> None:
    assert job(changed).digest() != job({}).digest()


def test_digest_of_a_workflow_depends_on_its_tasks() -> None:
    plain = workflow({"name": "a"})

    assert plain.digest() == workflow({"name": "a"}, suspend=True, priority=3).digest()
    assert plain.digest() != workflow({"name": "b"}).digest()
    assert len(plain.digest()) == 64


def test_digest_is_the_same_when_fields_come_in_another_order() -> None:
    tasks: list[Json] = [{"name": f"t{at}", "items": [10**20, 1.5, "é", at]} for at in range(3)]
    turned = [dict(reversed(task.items())) for task in tasks]

    assert workflow(*tasks).digest() == workflow(*turned).digest()
    assert workflow(*tasks).digest() != workflow(*reversed(tasks)).digest()


def _finally_plan(**spec: Any) -> Plan:
    tasks = [{"name": "a", "command": "true"}, {"name": "b", "count": 2, "command": "true"}]
    last: list[Json] = [{"name": "y", "command": "true"}]
    last += [{"name": "z", "command": "true", "dependsOn": after("y")}]
    return planner.plan_workflow(
        Workflow.parse(
            {
                "apiVersion": "workron.dev/v1alpha1",
                "kind": "Workflow",
                "metadata": {"name": "flow"},
                "spec": {"tasks": tasks, "finally": last} | spec,
            }
        ),
        UUID(int=1),
    )


def test_finally_waits_for_a_group_of_all_tasks() -> None:
    plan = _finally_plan()

    shown = [(n.kind, n.name, n.spec, n.group_id, n.upstreams) for n in plan.nodes]
    assert shown == [
        (Kind.WORKFLOW, "flow", 0, None, 3),
        (Kind.TASKS, "(tasks)", 0, 0, 2),
        (Kind.JOB, "a", 1, 1, 0),
        (Kind.ARRAY, "b", 2, 1, 2),
        (Kind.JOB, "b", 2, 3, 0),
        (Kind.JOB, "b", 2, 3, 0),
        (Kind.JOB, "y", 3, 0, 1),
        (Kind.JOB, "z", 4, 0, 1),
    ]
    assert plan.finally_from == 6
    edges = [(edge.upstream, edge.downstream, edge.condition) for edge in plan.edges]
    assert edges == [(1, 6, Condition.FINISHED), (6, 7, Condition.SUCCEEDED)]
    assert [n.feeds_inputs for n in plan.nodes[6:]] == [False, True]


def test_stored_spec_of_a_workflow_has_its_finally() -> None:
    specs = bodies(_finally_plan())

    assert [task["name"] for task in specs[0]["finally"]] == ["y", "z"]
    assert specs[4] == {"command": "true"}
    assert workflow({"name": "a"}).digest() != _finally_plan().digest()


@pytest.mark.parametrize(
    ("tasks", "last", "message"),
    [
        (
            [{"name": "a"}],
            [{"name": "z", "dependsOn": after("a")}],
            (
                "task 'z' of `finally` depends on task 'a'; tasks of `finally` start when all other"
                " tasks have ended: remove that dependency"
            ),
        ),
        (
            [{"name": "a", "dependsOn": after("z")}],
            [{"name": "z"}],
            (
                "task 'a' depends on 'z' of `finally`; tasks of `finally` start when all other"
                " tasks have ended: remove that dependency"
            ),
        ),
        (
            [{"name": "a"}],
            [{"name": "a"}],
            "a task and a task of `finally` are named 'a'; give one another name",
        ),
        (
            [{"name": "a"}],
            [{"name": "y", "dependsOn": after("z")}, {"name": "z", "dependsOn": after("y")}],
            (
                "these tasks depend on each other in a cycle: y -> z -> y; remove one of these"
                " dependencies"
            ),
        ),
        (
            [{"name": "a"}],
            [{"name": "z", "dependsOn": after("x")}],
            "task 'z' (finally[0]) depends on 'x', which is not a task of this workflow",
        ),
    ],
    ids=["on-task", "on-finally", "same-name", "cycle", "unknown"],
)
def test_wrong_dependencies_of_finally_are_rejected(
    tasks: list[Json], last: list[Json], message: str
) -> None:
    tasks, last = ([{"command": "true"} | one for one in some] for some in (tasks, last))
    with pytest.raises(errors.GraphError) as caught:
        _finally_plan(tasks=tasks, **{"finally": last})
    assert str(caught.value) == f"Workflow 'flow': {message}"


def test_relative_workdir_of_finally_is_rejected_at_its_place() -> None:
    with pytest.raises(errors.SpecError) as caught:
        _finally_plan(**{"finally": [{"name": "z", "command": "true", "workdir": "here"}]})
    assert caught.value.path == ("spec", "finally", 0, "workdir")


def test_tasks_get_the_variables_and_defaults_of_the_workflow() -> None:
    tasks: list[Json] = [
        {"name": "a", "command": "true", "env": [{"name": "B", "value": "own"}]},
        {"name": "b", "command": "true", "maxAttempts": 2, "pool": "small"},
    ]
    plan = _finally_plan(
        tasks=tasks,
        env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        defaults={"pool": "large", "maxAttempts": 5, "timeout": "10m"},
    )

    specs = bodies(plan)
    assert specs[0]["tasks"] == tasks
    assert specs[1] == {
        "command": "true",
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "own"}],
        "pool": "large",
        "maxAttempts": 5,
        "timeout": "10m",
    }
    assert (specs[2]["maxAttempts"], specs[2]["pool"]) == (2, "small")
    assert [one.pool for one in plan.terms] == ["default", "large", "small", "large", "large"]


def test_deadline_and_fail_fast_are_those_of_the_run() -> None:
    plan = _finally_plan(deadline="2h", failFast=True)

    assert [one.deadline_seconds for one in plan.terms] == [7200, None, None, None, None]
    assert plan.is_fail_fast


def test_task_depends_on_other_runs() -> None:
    outside = [{"name": "b.c", "kind": "Job"}, {"name": "a", "kind": "Workflow", "when": "Failed"}]
    plan = workflow(
        {"name": "a"}, {"name": "b", "count": 2, "dependsOn": [outside[0], *after("a"), outside[1]]}
    )

    assert plan.external == [
        ExternalDependency(3, Kind.JOB, "b.c"),
        ExternalDependency(4, Kind.JOB, "b.c"),
        ExternalDependency(3, Kind.WORKFLOW, "a", Condition.FAILED),
        ExternalDependency(4, Kind.WORKFLOW, "a", Condition.FAILED),
    ]
    assert [(edge.upstream, edge.downstream) for edge in plan.edges] == [(1, 3), (1, 4)]
    assert [node.upstreams for node in plan.nodes] == [2, 0, 2, 3, 3]


@pytest.mark.parametrize(
    ("upstreams", "message", "path"),
    [
        (
            [{"name": "x", "kind": "Job"}, {"name": "y"}],
            "task 'b' (tasks[1]) depends on 'y', which is not a task of this workflow",
            ("tasks", 1, "dependsOn", 1),
        ),
        (
            [{"name": "etl", "kind": "Workflow"}],
            "task 'b' depends on its own workflow; remove that dependency",
            ("tasks", 1, "dependsOn", 0),
        ),
        (
            [{"name": "x", "kind": "Job"}, {"name": "x", "kind": "Job", "when": "Failed"}],
            "task 'b' names Job 'x' twice under dependsOn; name each upstream once",
            ("tasks", 1, "dependsOn", 1),
        ),
        (
            [{"name": "x", "kind": "Job", "each": True}],
            (
                "task 'b' depends on each of Job 'x', which is not an array of this workflow;"
                " remove `each`"
            ),
            ("tasks", 1, "dependsOn", 0, "each"),
        ),
    ],
    ids=["unknown", "own", "twice", "each"],
)
def test_wrong_dependencies_on_other_runs_are_rejected(
    upstreams: list[Json], message: str, path: tuple[str | int, ...]
) -> None:
    with pytest.raises(errors.GraphError) as caught:
        workflow({"name": "a"}, {"name": "b", "dependsOn": upstreams})
    assert str(caught.value) == f"Workflow 'etl': {message}"
    assert caught.value.path == ("spec", *path)


def test_dependencies_on_other_runs_are_limited_with_each_element_counted() -> None:
    outside = [{"name": "x", "kind": "Job"}]
    most = {"name": "a", "count": 10_000, "dependsOn": outside}
    assert len(workflow(most).external) == 10_000
    with pytest.raises(errors.GraphError, match=r"more than 10,000 times.* the last one 'b'"):
        workflow(most, {"name": "b", "dependsOn": outside})


def test_finally_cannot_depend_on_another_run() -> None:
    outside = [{"name": "x", "kind": "Job"}]
    with pytest.raises(errors.GraphError, match="of `finally` depends on Job 'x'"):
        _finally_plan(**{"finally": [{"name": "z", "command": "true", "dependsOn": outside}]})


def test_start_after_of_a_task_is_kept() -> None:
    plan = workflow({"name": "a", "startAfter": "2026-01-31T08:00:00Z"}, {"name": "b"})

    assert plan.terms[1].start_after == datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert plan.terms[2].start_after is None


def test_field_with_its_usual_default_is_kept_when_the_workflow_has_other_defaults() -> None:
    written = {"name": "a", "pool": "default", "maxAttempts": 3}
    defaults = {"pool": "big", "maxAttempts": 7}
    plan = workflow(written, defaults=defaults)

    assert plan.digest() != workflow({"name": "a"}, defaults=defaults).digest()
    assert bodies(plan)[0]["tasks"][0]["pool"] == "default"
    assert [one.pool for one in plan.terms[1:]] == ["default"]


def test_variables_of_a_workflow_are_limited_as_each_task_stores_them() -> None:
    env = [{"name": f"V{at}", "value": "x" * 100_000} for at in range(10)]
    tasks: list[Json] = [{"name": f"t{at}"} for at in range(70)]

    with pytest.raises(errors.SpecError, match="put large values into a file") as caught:
        workflow(*tasks, env=env)
    assert caught.value.path == ("spec", "env")


def test_task_has_at_most_a_thousand_variables_with_those_of_its_workflow() -> None:
    env = [{"name": f"V{at}"} for at in range(1000)]

    with pytest.raises(errors.SpecError, match="task 'b' has 1,001 variables") as caught:
        workflow({"name": "a"}, {"name": "b", "env": [{"name": "OWN"}]}, env=env)
    assert caught.value.path == ("spec", "tasks", 1, "env")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"env": [{"name": "A"}, {"name": "B", "fromEnv": "B"}]}, ("spec", "env", 1, "fromEnv")),
        (
            {
                "env": [{"name": "A"}],
                "tasks": [{"name": "a", "command": "true", "env": [{"name": "B", "fromEnv": "B"}]}],
            },
            ("spec", "tasks", 0, "env", 0, "fromEnv"),
        ),
    ],
    ids=["workflow", "task"],
)
def test_variable_of_the_caller_is_rejected_where_it_is_written(
    spec: Json, path: tuple[str | int, ...]
) -> None:
    with pytest.raises(errors.SpecError) as caught:
        _finally_plan(**spec)
    assert caught.value.path == path


def test_deadline_in_finally_is_rejected() -> None:
    last = [{"name": "z", "command": "true", "deadline": "5s"}]
    with pytest.raises(errors.GraphError, match="'z' of `finally` has a deadline") as caught:
        _finally_plan(**{"finally": last})
    assert caught.value.path == ("spec", "finally", 0, "deadline")
