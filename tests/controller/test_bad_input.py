"""An object with any content reports what is wrong with it, and others run."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from tests import postgres_server
from tests.controller import counters
from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB, POOL, WORKFLOW, Json, Kind
from tests.controller.harness import ControllerHarness, opened, running, working
from tests.corpus import cases
from tests.postgres_server import Server
from workron.cli import system_clock
from workron.core.states import State
from workron.store.postgres import schema
from workron_controller.kube.auth import ApiAccess
from workron_controller.manager import ControllerConfig
from workron_controller.metrics import ControllerMetrics

pytestmark = pytest.mark.slow

GOOD = {"command": "true"}
ODD = "\u202e\u05d0e\u0301\U0001f600\u2028\u2029\x85\x7f\x1b[31m"
"""Right to left, combining, four bytes, line ends, and a control sequence of a terminal."""


@pytest.fixture
async def harness(api: FakeApi, fresh_database: str) -> AsyncIterator[ControllerHarness]:
    async with opened(api, fresh_database) as harness:
        yield harness


FAST = ControllerConfig(ttl_interval=0.02, quiet_pool_interval=0.1)


def _put(harness: ControllerHarness, name: str, kind: Kind = JOB, **changes: Any) -> None:
    """Store an object that an older schema, or none, may have accepted."""
    about = {
        "name": name,
        "namespace": "default",
        "uid": str(uuid.uuid4()),
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    raw = {"apiVersion": kind.version, "kind": kind.name, "spec": GOOD}
    raw |= changes | {"metadata": about | changes.get("metadata", {})}
    harness.api.storage.put((kind, "default", name), raw)


def _status(
    harness: ControllerHarness, name: str, kind: Kind = JOB, namespace: str = "default"
) -> Json:
    status = (harness.api.find(kind, name, namespace) or {}).get("status")
    return status if isinstance(status, dict) else {}


def _rejection(
    harness: ControllerHarness, name: str, kind: Kind = JOB, namespace: str = "default"
) -> str:
    """Return the message of an object that is not accepted."""
    status = _status(harness, name, kind, namespace)
    for one in status.get("conditions", ()):
        if one["type"] == "Accepted" and one["status"] == "False":
            return str(one["message"])
    return ""


async def _run_good_job(harness: ControllerHarness, name: str = "good") -> None:
    """Create a valid Job after all other objects, and wait for its end."""
    await harness.api.watches.wait_until_open(JOB)
    harness.api.add(JOB, name, spec=GOOD)
    await harness.wait_until(lambda: harness.phase(name) == State.SUCCEEDED)


UNACCEPTED = [case for case in cases.of("unaccepted") if not case.name.startswith("pool-")]


async def test_object_reports_why_it_cannot_run_when_the_schema_accepts_it(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    assert len(UNACCEPTED) >= 20
    raws = [yaml.safe_load(case.text) for case in UNACCEPTED]
    objects = [
        (raw["metadata"]["name"], JOB if raw["kind"] == "Job" else WORKFLOW, case.name)
        for case, raw in zip(UNACCEPTED, raws, strict=True)
    ]
    for raw, (name, kind, namespace) in zip(raws, objects, strict=True):
        harness.api.add(kind, name, namespace, spec=raw["spec"])
    async with running(harness, access, config=FAST), working(harness):
        await _run_good_job(harness)
        await harness.wait_until(lambda: all(_rejection(harness, *one) for one in objects))
    messages = {namespace: _rejection(harness, *one) for one in objects for namespace in one[2:]}
    missing = {case.name for case in UNACCEPTED if case.words not in messages[case.name]}
    assert not missing, messages


SHAPES: dict[str, tuple[Json, str]] = {
    "null": ({"spec": None}, "spec: is required"),
    "list": ({"spec": ["true"]}, "spec: must be a mapping, found a list"),
    "text": ({"spec": "true"}, "spec: must be a mapping, found the text 'true'"),
    "unknown": ({"spec": GOOD | {"shel": 1}}, "spec.shel: there is no such field here"),
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


async def test_object_reports_what_is_wrong_when_an_older_schema_accepted_it(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    for name, (changes, _) in SHAPES.items():
        _put(harness, name, **changes)
    for name, (task, _) in FLOWS.items():
        _put(harness, name, WORKFLOW, spec={"tasks": [GOOD | task]})
    async with running(harness, access, config=FAST), working(harness):
        await _run_good_job(harness)
        await harness.wait_until(lambda: all(_rejection(harness, name) for name in SHAPES))
        await harness.wait_until(lambda: all(_rejection(harness, name, WORKFLOW) for name in FLOWS))
    for kind, shapes in ((JOB, SHAPES), (WORKFLOW, FLOWS)):
        for name, (_, words) in shapes.items():
            assert words in _rejection(harness, name, kind)
            assert _status(harness, name, kind)["reason"] == "InvalidSpec"


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


async def test_object_runs_when_only_other_parts_than_its_spec_are_malformed(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    async with running(harness, access, config=FAST), working(harness):
        await harness.api.watches.wait_until_open(JOB)
        for name, changes in FINE.items():
            _put(harness, name, **changes)
        await harness.wait_until(
            lambda: all(_status(harness, name).get("phase") == "Succeeded" for name in FINE)
        )
        [accepted, _] = _status(harness, "status-conditions")["conditions"]
        assert accepted["lastTransitionTime"].startswith("20")


async def test_watch_and_list_continue_when_an_object_has_no_identity(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    _put(harness, "a", metadata={"uid": "no uid"})
    _put(harness, "b", metadata={"namespace": None})
    _put(harness, "c", WORKFLOW, metadata={"uid": 7})
    async with (
        running(harness, access, config=FAST) as controller,
        working(harness),
    ):
        await harness.wait_until(lambda: controller.resync.completed_at is not None)
        await _run_good_job(harness)
        assert counters.value(controller.informer.restarts) == 0


async def test_valid_objects_run_when_many_others_are_invalid(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    def waits_for(number: int) -> Json:
        return GOOD | {"dependsOn": [{"name": f"job-{number}"}]}

    bad = {at: GOOD | {"argv": ["true"]} for at in range(0, 300, 20)}
    # Pairs that depend on each other.
    cycles = {at: waits_for(at + 20 if at % 40 == 10 else at - 20) for at in range(10, 290, 20)}
    for at in range(300):
        harness.api.add(JOB, f"job-{at}", spec=(bad | cycles).get(at, GOOD))
    fine = [f"job-{at}" for at in range(300) if at not in bad | cycles]
    async with running(harness, access, config=FAST), working(harness):
        await harness.wait_until(lambda: all(harness.phase(name) == "Succeeded" for name in fine))
        await harness.wait_until(lambda: all(_rejection(harness, f"job-{at}") for at in bad))
        await harness.wait_until(
            lambda: sum(bool(_rejection(harness, f"job-{at}")) for at in cycles) == len(cycles) / 2
        )


async def test_large_objects_run(harness: ControllerHarness, access: ApiAccess) -> None:
    tasks = [{"name": f"t{at}", "command": "true " + "x" * 1_400} for at in range(1_000)]
    env = [{"name": f"E{at}", "value": "v" * 100_000} for at in range(14)]
    harness.api.add(WORKFLOW, "large", spec={"tasks": tasks})
    harness.api.add(JOB, "large", spec=GOOD | {"env": env})
    async with running(harness, access, config=FAST), working(harness):
        await harness.wait_until(lambda: harness.phase("large", WORKFLOW) == "Succeeded")
        await harness.wait_until(lambda: harness.phase("large") == "Succeeded")
        await _run_good_job(harness)


async def test_dependency_is_found_when_the_names_have_the_maximum_length(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    first, second = "a" * 253, "b." + "c" * 251
    harness.api.add(JOB, second, spec=GOOD | {"dependsOn": [{"name": first, "kind": "Workflow"}]})
    async with running(harness, access, config=FAST), working(harness):
        await harness.wait_until(lambda: _status(harness, second).get("reason") == "Upstream")
        harness.api.add(WORKFLOW, first, spec={"tasks": [GOOD | {"name": "t" * 63}]})
        await harness.wait_until(lambda: harness.phase(second) == "Succeeded")


async def test_jobs_run_when_a_pool_is_malformed(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    _put(harness, "a", POOL, spec=["x"])
    _put(harness, "b", POOL, spec=None, status="x", metadata={"generation": None, "labels": None})
    _put(harness, "c", POOL, spec={"minReplicas": "many"}, status={"conditions": [7, {"type": []}]})
    async with running(harness, access, config=FAST), working(harness):
        await _run_good_job(harness)
        await harness.wait_until(
            lambda: all(_status(harness, name, POOL) for name in ("a", "b", "c"))
        )
        await harness.wait_until(lambda: "many" in str(_status(harness, "c", POOL)))
    assert "spec: must be a mapping, found a list" in str(_status(harness, "a", POOL))
    assert "spec.minReplicas: must be a whole number" in str(_status(harness, "c", POOL))


async def test_job_reports_its_pool_when_that_does_not_exist(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    harness.api.add(JOB, "lost", spec=GOOD | {"pool": "nowhere"})
    async with running(harness, access, config=FAST), working(harness):
        await _run_good_job(harness)
        await harness.wait_until(lambda: _status(harness, "lost").get("reason") == "PoolNotFound")
    status = _status(harness, "lost")
    assert status["phase"] == "Waiting"
    assert "WorkerPool nowhere does not exist in namespace default; create it" in status["message"]


async def test_job_is_not_deleted_when_its_status_claims_that_it_has_ended(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    forged = {"phase": "Succeeded", "finishedAt": "2001-01-01T00:00:00Z"}
    harness.api.add(JOB, "held", spec=GOOD | {"suspend": True, "ttlSecondsAfterFinished": 1})
    async with running(harness, access, config=FAST):
        await harness.wait_until(lambda: harness.phase("held") == "Waiting")
    harness.api.edit(JOB, "held", status=forged)
    async with running(harness, access, "another", config=FAST):
        await harness.wait_until(lambda: harness.phase("held") != "Succeeded")
    assert harness.phase("held") == "Waiting"


async def test_status_is_corrected_when_a_user_has_changed_its_phase(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    harness.api.add(JOB, "done", spec=GOOD)
    async with (
        running(harness, access, config=FAST) as controller,
        working(harness),
    ):
        await harness.wait_until(lambda: harness.phase("done") == "Succeeded")
        for forged in ("Failed", "Running", ["Succeeded"]):
            harness.api.edit(JOB, "done", status={"phase": forged})
            await controller.resync.run_once()
            await harness.wait_until(lambda: harness.phase("done") == "Succeeded")


async def test_jobs_are_cancelled_when_their_namespace_is_deleted(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    names = [f"job-{number}" for number in range(20)]
    for name in names:
        harness.api.add(JOB, name, "ending", spec=GOOD)
    async with running(harness, access, config=FAST), working(harness):
        await harness.wait_until(
            lambda: all(_status(harness, name, JOB, "ending") for name in names)
        )
        for name in names:
            harness.api.remove(JOB, name, "ending")
        await _run_good_job(harness)
        await harness.wait_for_states("ending", State.CANCELLED)


@pytest.fixture
def database() -> Iterator[Server]:
    with postgres_server.serving() as server:
        asyncio.run(schema.migrate(server.dsn))
        yield server


async def test_objects_are_submitted_later_when_the_database_is_down(
    api: FakeApi, database: Server, access: ApiAccess
) -> None:
    async with (
        opened(api, database.dsn) as harness,
        running(harness, access, config=FAST) as controller,
    ):
        registry = CollectorRegistry()
        ControllerMetrics(controller, registry, system_clock.CLOCK)
        api.add(POOL, "some", spec={})
        await harness.wait_until(lambda: _status(harness, "some", POOL) != {})
        await asyncio.to_thread(database.crash)
        await api.watches.wait_until_open(JOB)
        api.add(JOB, "meanwhile", spec=GOOD)
        await harness.wait_until(
            lambda: "DatabaseUnavailable" in str(_status(harness, "some", POOL))
        )
        await harness.wait_until(
            lambda: registry.get_sample_value("workron_controller_workqueue_depth") == 1
        )
        assert "Stalled" not in str(_status(harness, "some", POOL))
        assert _status(harness, "meanwhile") == {}
        await asyncio.to_thread(database.start)
        async with working(harness):
            await harness.wait_until(lambda: harness.phase("meanwhile") == "Succeeded")
