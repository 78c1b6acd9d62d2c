"""Which statuses call for a person, and the Events that say so."""

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


def _seen(name: str = "job", number: int = 1, generation: int = 1) -> CachedObject:
    return CachedObject(ObservedObject(UUID(int=number), Kind.JOB, "lab", name, generation))


def _status(kind: str, holds: str, reason: str, message: str = "why") -> dict[str, Any]:
    told = {"type": kind, "status": holds, "reason": reason, "message": message}
    return {"conditions": [{"type": "Other", "status": "True", "reason": "Any"}, told]}


REFUSED = _status("Accepted", "False", "InvalidSpec", "command: is missing")
CLOSED = _status("Reconciling", "True", "NamespaceNotEnabled", "kubectl create rolebinding")
STORED = _status("Accepted", "True", "Stored")


@pytest.mark.parametrize("after", [REFUSED, CLOSED])
@pytest.mark.parametrize("before", [{}, STORED, {"conditions": "forged"}, {"conditions": [1]}])
def test_what_a_person_must_act_on_is_told_when_it_begins(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    notice = status_writer.event_for_change(_seen(), before, after)
    assert notice is not None
    assert notice.involved == InvolvedObject("Job", "lab", "job", str(UUID(int=1)))
    assert notice.cause.reason == after["conditions"][1]["reason"]
    assert notice.cause.message == after["conditions"][1]["message"]


@pytest.mark.parametrize(
    "after",
    [
        {},
        STORED,
        _status("Stalled", "True", "ExitCode"),
        _status("Failed", "True", "ExitCode"),
        _status("Reconciling", "True", "PoolNotFound"),
        _status("Reconciling", "True", "Backoff"),
    ],
)
def test_what_nobody_has_to_act_on_is_no_notice(after: dict[str, Any]) -> None:
    assert status_writer.event_for_change(_seen(), REFUSED, after) is None
    assert status_writer.event_for_change(_seen(), {}, after) is None


def test_what_a_status_says_already_is_not_told_again_in_other_words() -> None:
    other = _status("Accepted", "False", "InvalidSpec", "command: is still missing")
    assert status_writer.event_for_change(_seen(), REFUSED, other) is None
    graver = _status("Accepted", "False", "InvalidGraph")
    assert status_writer.event_for_change(_seen(), REFUSED, graver) is not None


def _of(seen: CachedObject, status: dict[str, Any]) -> KubernetesEvent:
    notice = status_writer.event_for_change(seen, {}, status)
    assert notice is not None
    return notice


def test_same_occasion_has_the_same_event_whoever_tells_it() -> None:
    again = CachedObject(ObservedObject(UUID(int=1), Kind.JOB, "lab", "job", 1, status=STORED))
    assert _of(_seen(), REFUSED).name == _of(again, REFUSED).name
    assert _of(_seen(), REFUSED).name != _of(_seen(generation=2), REFUSED).name
    assert _of(_seen(), REFUSED).name != _of(_seen(number=2), REFUSED).name


def test_namespace_has_one_occasion_for_all_its_objects() -> None:
    first, second = (_of(_seen(name, number), CLOSED) for number, name in enumerate("ab"))
    assert first.name == second.name
    first, second = (_of(_seen(name, number), REFUSED) for number, name in enumerate("ab"))
    assert first.name != second.name


@pytest.mark.parametrize("name", ["job", "x" * 253])
@pytest.mark.parametrize("version", ["1.33.0", "1.37.0"])
def test_event_is_one_that_an_api_server_knows(name: str, version: str) -> None:
    why = StatusReason("InvalidSpec", "é" * 5_000)
    notice = KubernetesEvent(InvolvedObject("Job", "lab", name, str(UUID(int=1))), why, "occasion")
    made = notice.manifest(NOON)
    assert schemas.problems(made, version) == []
    assert len(made["metadata"]["name"]) <= 253
    assert made["metadata"]["namespace"] == made["involvedObject"]["namespace"] == "lab"
    assert (made["type"], made["reason"], len(made["message"])) == ("Warning", "InvalidSpec", 1024)
    assert made["lastTimestamp"] == "2026-01-01T12:00:00Z"
