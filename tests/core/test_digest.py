"""The digest of a run: of its whole content, and worked out step by step."""

import hashlib
import itertools
import json
from typing import Any

import pytest

from workron.core import payloads
from workron.core.model.job import JobSpec
from workron.core.model.workflow import WorkflowSpec
from workron.core.plan import Kind
from workron.core.planner import SpecDigest

_MANY = 450


def _tasks(count: int) -> list[dict[str, Any]]:
    return [{"name": f"t{at}", "argv": ["run", '"tasks":[]', str(at)]} for at in range(count)]


@pytest.mark.parametrize("count", [1, 200, 201, _MANY])
def test_digest_of_a_workflow_is_that_of_its_text_in_one(count: int) -> None:
    tasks = _tasks(count)
    text = json.dumps(
        {"kind": "Workflow", "spec": {"tasks": tasks}}, sort_keys=True, separators=(",", ":")
    )
    spec = WorkflowSpec.parse({"tasks": tasks, "priority": 3})
    assert SpecDigest(Kind.WORKFLOW, spec)() == hashlib.sha256(text.encode()).hexdigest()


def test_digest_of_a_job_is_that_of_its_text() -> None:
    text = b'{"kind":"Job","spec":{"command":"echo"}}'
    spec = JobSpec.parse({"command": "echo", "pool": "default"})
    assert SpecDigest(Kind.JOB, spec)() == hashlib.sha256(text).hexdigest()


def test_there_are_pauses_however_many_tasks_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    worded, canonical = [], payloads.canonical_json

    def noted(value: Any) -> bytes:
        worded.append(value)
        return canonical(value)

    monkeypatch.setattr(payloads, "canonical_json", noted)
    digest = SpecDigest(Kind.WORKFLOW, WorkflowSpec.parse({"tasks": _tasks(_MANY)}))
    at_pauses = [0, *(len(worded) for _ in digest.steps())]
    assert max(late - early for early, late in itertools.pairwise(at_pauses)) <= 200
    assert len(worded) > _MANY


def test_it_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = SpecDigest(Kind.WORKFLOW, WorkflowSpec.parse({"tasks": _tasks(3)}))
    text = digest()
    monkeypatch.setattr(payloads, "canonical_json", None)
    assert digest() == text
    assert not list(digest.steps())
