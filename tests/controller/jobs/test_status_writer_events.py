"""Events for statuses that a user has to act on."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tests.helm import schemas
from workron.core.plan import Kind
from workron_controller.jobs import status_writer
from workron_controller.jobs.cache import CachedObject, ObservedObject
from workron_controller.kube.conditions import StatusReason
from workron_controller.kube.events import InvolvedObject, KubernetesEvent

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _cached(name: str = "job", number: int = 1, generation: int = 1) -> CachedObject:
    return CachedObject(ObservedObject(UUID(int=number), Kind.JOB, "lab", name, generation))


def _status(kind: str, holds: str, reason: str, message: str = "why") -> dict[str, Any]:
    condition = {"type": kind, "status": holds, "reason": reason, "message": message}
    return {"conditions": [{"type": "Other", "status": "True", "reason": "Any"}, condition]}


REJECTED = _status("Accepted", "False", "InvalidSpec", "command: is missing")
NOT_ENABLED = _status("Reconciling", "True", "NamespaceNotEnabled", "kubectl create rolebinding")
ACCEPTED = _status("Accepted", "True", "Stored")


@pytest.mark.parametrize("after", [REJECTED, NOT_ENABLED])
@pytest.mark.parametrize("before", [{}, ACCEPTED, {"conditions": "forged"}, {"conditions": [1]}])
def test_event_is_recorded_when_a_status_begins_to_need_a_user(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    event = status_writer.event_for_change(_cached(), before, after)
    assert event is not None
    assert event.involved == InvolvedObject("Job", "lab", "job", str(UUID(int=1)))
    assert event.cause.reason == after["conditions"][1]["reason"]
    assert event.cause.message == after["conditions"][1]["message"]


@pytest.mark.parametrize(
    "after",
    [
        {},
        ACCEPTED,
        _status("Stalled", "True", "ExitCode"),
        _status("Failed", "True", "ExitCode"),
        _status("Reconciling", "True", "PoolNotFound"),
        _status("Reconciling", "True", "Backoff"),
    ],
)
def test_no_event_is_recorded_when_no_user_has_to_act(after: dict[str, Any]) -> None:
    assert status_writer.event_for_change(_cached(), REJECTED, after) is None
    assert status_writer.event_for_change(_cached(), {}, after) is None


def test_no_event_is_recorded_when_only_the_message_changes() -> None:
    other = _status("Accepted", "False", "InvalidSpec", "command: is still missing")
    assert status_writer.event_for_change(_cached(), REJECTED, other) is None
    other_reason = _status("Accepted", "False", "InvalidGraph")
    assert status_writer.event_for_change(_cached(), REJECTED, other_reason) is not None


def _event(cached: CachedObject, status: dict[str, Any]) -> KubernetesEvent:
    event = status_writer.event_for_change(cached, {}, status)
    assert event is not None
    return event


def test_event_has_the_same_name_on_every_replica() -> None:
    again = CachedObject(ObservedObject(UUID(int=1), Kind.JOB, "lab", "job", 1, status=ACCEPTED))
    assert _event(_cached(), REJECTED).name == _event(again, REJECTED).name
    assert _event(_cached(), REJECTED).name != _event(_cached(generation=2), REJECTED).name
    assert _event(_cached(), REJECTED).name != _event(_cached(number=2), REJECTED).name


def test_objects_share_an_event_when_their_namespace_is_not_enabled() -> None:
    first, second = (_event(_cached(name, number), NOT_ENABLED) for number, name in enumerate("ab"))
    assert first.name == second.name
    first, second = (_event(_cached(name, number), REJECTED) for number, name in enumerate("ab"))
    assert first.name != second.name


@pytest.mark.parametrize("name", ["job", "x" * 253])
@pytest.mark.parametrize("version", ["1.33.0", "1.37.0"])
def test_event_is_valid_for_the_api_server(name: str, version: str) -> None:
    why = StatusReason("InvalidSpec", "é" * 5_000)
    event = KubernetesEvent(InvolvedObject("Job", "lab", name, str(UUID(int=1))), why, "key")
    made = event.manifest(NOON)
    assert schemas.problems(made, version) == []
    assert len(made["metadata"]["name"]) <= 253
    assert made["metadata"]["namespace"] == made["involvedObject"]["namespace"] == "lab"
    assert (made["type"], made["reason"], len(made["message"])) == ("Warning", "InvalidSpec", 1024)
    assert made["lastTimestamp"] == "2026-01-01T12:00:00Z"
