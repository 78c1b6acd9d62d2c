"""Whatever is in an object: it says what is wrong with it, and nobody else is the worse for it."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from tests import postgres_server
from tests.controller import counters, harness
from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB, POOL, WORKFLOW, Json, Kind
from tests.controller.harness import Scene
from tests.corpus import cases
from tests.postgres_server import Server
from workron.cli import system_clock
from workron.core.states import State
from workron.store.postgres import schema
from workron_controller.kube.auth import ApiAccess
from workron_controller.manager import ControllerConfig
from workron_controller.metrics import ControllerMetrics

GOOD = {"command": "true"}
ODD = "\u202e\u05d0e\u0301\U0001f600\u2028\u2029\x85\x7f\x1b[31m"
"""From right to left, combining, of four bytes, ends of lines, and for a terminal."""


@pytest.fixture
async def scene(api: FakeApi, fresh_database: str) -> AsyncIterator[Scene]:
    async with harness.opened(api, fresh_database) as scene:
        yield scene


FAST = ControllerConfig(ttl_interval=0.02, quiet_pool_interval=0.1)


def _put(scene: Scene, name: str, kind: Kind = JOB, **over: Any) -> None:
    """Have an object be there as an older schema, or none, may have let it in."""
    about = {
        "name": name,
        "namespace": "default",
        "uid": str(uuid.uuid4()),
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    raw = {"apiVersion": kind.version, "kind": kind.name, "spec": GOOD}
    raw |= over | {"metadata": about | over.get("metadata", {})}
    scene.api.storage.put((kind, "default", name), raw)


def _status(scene: Scene, name: str, kind: Kind = JOB, namespace: str = "default") -> Json:
    status = (scene.api.find(kind, name, namespace) or {}).get("status")
    return status if isinstance(status, dict) else {}


def _refusal(scene: Scene, name: str, kind: Kind = JOB, namespace: str = "default") -> str:
    """Give the message of an object that is not accepted."""
    status = _status(scene, name, kind, namespace)
    for one in status.get("conditions", ()):
        if one["type"] == "Accepted" and one["status"] == "False":
            return str(one["message"])
    return ""


async def _goes_through(scene: Scene, name: str = "good") -> None:
    """Have a good object come last of all, and be run."""
    await scene.api.watches.wait_until_open(JOB)
    scene.api.add(JOB, name, spec=GOOD)
    await scene.until(lambda: scene.phase(name) == State.SUCCEEDED)


UNACCEPTED = [case for case in cases.of("unaccepted") if not case.name.startswith("pool-")]


async def test_what_the_schema_lets_through_and_cannot_be_run_says_why(
    scene: Scene, access: ApiAccess
) -> None:
    assert len(UNACCEPTED) >= 20
    raws = [yaml.safe_load(case.text) for case in UNACCEPTED]
    who = [
        (raw["metadata"]["name"], JOB if raw["kind"] == "Job" else WORKFLOW, case.name)
        for case, raw in zip(UNACCEPTED, raws, strict=True)
    ]
    for raw, (name, kind, namespace) in zip(raws, who, strict=True):
        scene.api.add(kind, name, namespace, spec=raw["spec"])
    async with harness.running(scene, access, config=FAST), harness.worked(scene):
        await _goes_through(scene)
        await scene.until(lambda: all(_refusal(scene, *one) for one in who))
    told = {namespace: _refusal(scene, *one) for one in who for namespace in one[2:]}
    missed = {case.name for case in UNACCEPTED if case.words not in told[case.name]}
    assert not missed, told


SHAPES: dict[str, tuple[Json, str]] = {
    "null": ({"spec": None}, "spec: is required"),
    "list": ({"spec": ["true"]}, "spec: must be a mapping, found a list"),
    "text": ({"spec": "true"}, "spec: must be a mapping, found the text 'true'"),
    "unknown": ({"spec": GOOD | {"shell": 1}}, "spec.shell: there is no such field here"),
    "types": ({"spec": GOOD | {"priority": "high"}}, "spec.priority: must be a whole number"),
    "deep": ({"spec": GOOD | {"env": json.loads("[" * 400 + "]" * 400)}}, "spec.env[0]: must be"),
    "ttl": ({"spec": GOOD | {"ttlSecondsAfterFinished": 1 << 80}}, "spec.ttlSeconds"),
    "labels": ({"metadata": {"labels": ["a"]}}, "metadata.labels: must be a mapping"),
    "notes": ({"metadata": {"annotations": {"a": 1}}}, "metadata.annotations.a: must be a text"),
    "nul-notes": (
        {"metadata": {"annotations": {"a": "b\0c"}}},
        "metadata.annotations.a: has a NUL",
    ),
    "nul-label": ({"metadata": {"labels": {"a": "\0"}}}, "metadata.labels.a: has a NUL"),
    "nul-command": ({"spec": {"command": "a \0"}}, "spec.command: has a NUL character at pos"),
    "nul-argv": ({"spec": {"argv": ["a", "b\0"]}}, "spec.argv[1]: has a NUL character at pos"),
    "nul-env": (
        {"spec": GOOD | {"env": [{"name": "A", "value": "\0"}]}},
        "spec.env[0].value: has a NUL character at position 0; leave it out or encode it",
    ),
}
FLOWS: dict[str, tuple[Json, str]] = {
    "nul-item": ({"name": "a", "items": ["\0"]}, "spec.tasks[0].items[0]: has a NUL character"),
    "nul-task": ({"name": "\0"}, "spec.tasks[0].name: has a NUL character"),
    "odd-task": ({"name": ODD}, "spec.tasks[0].name: '\\u202e"),
    "no-item": ({"name": "a", "items": [{}]}, "spec.tasks[0].items[0]: an item must be a text"),
}


async def test_object_that_an_older_schema_let_in_says_what_is_wrong_with_it(
    scene: Scene, access: ApiAccess
) -> None:
    for name, (over, _) in SHAPES.items():
        _put(scene, name, **over)
    for name, (task, _) in FLOWS.items():
        _put(scene, name, WORKFLOW, spec={"tasks": [GOOD | task]})
    async with harness.running(scene, access, config=FAST), harness.worked(scene):
        await _goes_through(scene)
        await scene.until(lambda: all(_refusal(scene, name) for name in SHAPES))
        await scene.until(lambda: all(_refusal(scene, name, WORKFLOW) for name in FLOWS))
    for kind, shapes in ((JOB, SHAPES), (WORKFLOW, FLOWS)):
        for name, (_, words) in shapes.items():
            assert words in _refusal(scene, name, kind)
            assert _status(scene, name, kind)["reason"] == "InvalidSpec"


FINE: dict[str, Json] = {
    "labels": {"metadata": {"labels": None, "annotations": None}},
    "generation": {"metadata": {"generation": None}},
    "kopf": {"metadata": {"annotations": {"kopf.zalando.org/last-handled-configuration": "{"}}},
    "status-text": {"status": "Succeeded"},
    "status-list": {"status": [1]},
    "status-types": {"status": {"phase": ["x"], "conditions": {"a": 1}, "finishedAt": 7}},
    "status-conditions": {
        "status": {
            "phase": {},
            "conditions": [
                5,
                {"type": [], "status": {}},
                {"type": "Accepted", "status": "True", "lastTransitionTime": "soon"},
            ],
        }
    },
    "note": {"metadata": {"annotations": {"a": "x" * 262_143}}},
    "odd": {"spec": {"argv": ["echo", ODD]}, "metadata": {"annotations": {"a": ODD}}},
    "n" * 253: {},
}


async def test_object_of_an_odd_shape_that_asks_for_what_can_be_done_is_done(
    scene: Scene, access: ApiAccess
) -> None:
    async with harness.running(scene, access, config=FAST), harness.worked(scene):
        await scene.api.watches.wait_until_open(JOB)
        for name, over in FINE.items():
            _put(scene, name, **over)
        await scene.until(
            lambda: all(_status(scene, name).get("phase") == "Succeeded" for name in FINE)
        )
        [accepted, _] = _status(scene, "status-conditions")["conditions"]
        assert accepted["lastTransitionTime"].startswith("20")


async def test_object_that_is_none_ends_neither_the_watch_nor_the_list(
    scene: Scene, access: ApiAccess
) -> None:
    _put(scene, "a", metadata={"uid": "no uid"})
    _put(scene, "b", metadata={"namespace": None})
    _put(scene, "c", WORKFLOW, metadata={"uid": 7})
    async with (
        harness.running(scene, access, config=FAST) as operator,
        harness.worked(scene),
    ):
        await scene.until(lambda: operator.resync.completed_at is not None)
        await _goes_through(scene)
        assert counters.value(operator.informer.restarts) == 0


async def test_each_tenth_of_many_says_what_is_wrong_and_all_others_run(
    scene: Scene, access: ApiAccess
) -> None:
    def waits_for(number: int) -> Json:
        return GOOD | {"dependsOn": [{"name": f"job-{number}"}]}

    bad = {at: GOOD | {"argv": ["true"]} for at in range(0, 300, 20)}
    # Each of two closes the other's circle.
    circles = {at: waits_for(at + 20 if at % 40 == 10 else at - 20) for at in range(10, 290, 20)}
    for at in range(300):
        scene.api.add(JOB, f"job-{at}", spec=(bad | circles).get(at, GOOD))
    fine = [f"job-{at}" for at in range(300) if at not in bad | circles]
    async with harness.running(scene, access, config=FAST), harness.worked(scene):
        await scene.until(lambda: all(scene.phase(name) == "Succeeded" for name in fine))
        await scene.until(lambda: all(_refusal(scene, f"job-{at}") for at in bad))
        await scene.until(
            lambda: sum(bool(_refusal(scene, f"job-{at}")) for at in circles) == len(circles) / 2
        )


async def test_large_objects_go_through(scene: Scene, access: ApiAccess) -> None:
    tasks = [{"name": f"t{at}", "command": "true " + "x" * 1_400} for at in range(1_000)]
    env = [{"name": f"E{at}", "value": "v" * 100_000} for at in range(14)]
    scene.api.add(WORKFLOW, "large", spec={"tasks": tasks})
    scene.api.add(JOB, "large", spec=GOOD | {"env": env})
    async with harness.running(scene, access, config=FAST), harness.worked(scene):
        await scene.until(lambda: scene.phase("large", WORKFLOW) == "Succeeded")
        await scene.until(lambda: scene.phase("large") == "Succeeded")
        await _goes_through(scene)


async def test_longest_names_are_waited_for_by_name(scene: Scene, access: ApiAccess) -> None:
    first, second = "a" * 253, "b." + "c" * 251
    scene.api.add(JOB, second, spec=GOOD | {"dependsOn": [{"name": first, "kind": "Workflow"}]})
    async with harness.running(scene, access, config=FAST), harness.worked(scene):
        await scene.until(lambda: _status(scene, second).get("reason") == "Upstream")
        scene.api.add(WORKFLOW, first, spec={"tasks": [GOOD | {"name": "t" * 63}]})
        await scene.until(lambda: scene.phase(second) == "Succeeded")


async def test_pool_that_is_nonsense_keeps_no_job_waiting(scene: Scene, access: ApiAccess) -> None:
    _put(scene, "a", POOL, spec=["x"])
    _put(scene, "b", POOL, spec=None, status="x", metadata={"generation": None, "labels": None})
    _put(scene, "c", POOL, spec={"minReplicas": "many"}, status={"conditions": [7, {"type": []}]})
    async with harness.running(scene, access, config=FAST), harness.worked(scene):
        await _goes_through(scene)
        await scene.until(lambda: all(_status(scene, name, POOL) for name in ("a", "b", "c")))
        await scene.until(lambda: "many" in str(_status(scene, "c", POOL)))
    assert "spec: must be a mapping, found a list" in str(_status(scene, "a", POOL))
    assert "spec.minReplicas: must be a whole number" in str(_status(scene, "c", POOL))


async def test_job_of_a_pool_that_there_is_not_says_so(scene: Scene, access: ApiAccess) -> None:
    scene.api.add(JOB, "lost", spec=GOOD | {"pool": "nowhere"})
    async with harness.running(scene, access, config=FAST), harness.worked(scene):
        await _goes_through(scene)
        await scene.until(lambda: _status(scene, "lost").get("reason") == "PoolNotFound")
    status = _status(scene, "lost")
    assert status["phase"] == "Waiting"
    assert "WorkerPool nowhere does not exist in namespace default; create it" in status["message"]


async def test_forged_end_takes_nothing_away_from_a_job_that_goes_on(
    scene: Scene, access: ApiAccess
) -> None:
    forged = {"phase": "Succeeded", "finishedAt": "2001-01-01T00:00:00Z"}
    scene.api.add(JOB, "held", spec=GOOD | {"suspend": True, "ttlSecondsAfterFinished": 1})
    async with harness.running(scene, access, config=FAST):
        await scene.until(lambda: scene.phase("held") == "Waiting")
    scene.api.edit(JOB, "held", status=forged)
    async with harness.running(scene, access, "another", config=FAST):
        await scene.until(lambda: scene.phase("held") != "Succeeded")
    assert scene.phase("held") == "Waiting"


async def test_another_end_than_the_true_one_is_put_right(scene: Scene, access: ApiAccess) -> None:
    scene.api.add(JOB, "done", spec=GOOD)
    async with (
        harness.running(scene, access, config=FAST) as operator,
        harness.worked(scene),
    ):
        await scene.until(lambda: scene.phase("done") == "Succeeded")
        for forged in ("Failed", "Running", ["Succeeded"]):
            scene.api.edit(JOB, "done", status={"phase": forged})
            await operator.resync.run_once()
            await scene.until(lambda: scene.phase("done") == "Succeeded")


async def test_namespace_that_ends_with_all_that_is_in_it_ends_its_jobs(
    scene: Scene, access: ApiAccess
) -> None:
    names = [f"job-{number}" for number in range(20)]
    for name in names:
        scene.api.add(JOB, name, "ending", spec=GOOD)
    async with harness.running(scene, access, config=FAST), harness.worked(scene):
        await scene.until(lambda: all(_status(scene, name, JOB, "ending") for name in names))
        for name in names:
            scene.api.remove(JOB, name, "ending")
        await _goes_through(scene)
        await scene.all_stand("ending", State.CANCELLED)


@pytest.fixture
def database() -> Iterator[Server]:
    with postgres_server.serving() as server:
        asyncio.run(schema.migrate(server.dsn))
        yield server


async def test_objects_wait_for_a_database_that_is_down_and_nothing_is_stalled_by_that(
    api: FakeApi, database: Server, access: ApiAccess
) -> None:
    async with (
        harness.opened(api, database.dsn) as scene,
        harness.running(scene, access, config=FAST) as operator,
    ):
        registry = CollectorRegistry()
        ControllerMetrics(operator, registry, system_clock.CLOCK)
        api.add(POOL, "some", spec={})
        await scene.until(lambda: _status(scene, "some", POOL) != {})
        await asyncio.to_thread(database.crash)
        await api.watches.wait_until_open(JOB)
        api.add(JOB, "meanwhile", spec=GOOD)
        await scene.until(lambda: "DatabaseUnavailable" in str(_status(scene, "some", POOL)))
        await scene.until(
            lambda: registry.get_sample_value("workron_controller_workqueue_depth") == 1
        )
        assert "Stalled" not in str(_status(scene, "some", POOL))
        assert _status(scene, "meanwhile") == {}
        await asyncio.to_thread(database.start)
        async with harness.worked(scene):
            await scene.until(lambda: scene.phase("meanwhile") == "Succeeded")
