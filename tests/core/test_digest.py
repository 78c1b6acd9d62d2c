"""The digest of a run: of its whole content, and worked out step by step."""

import hashlib
import json
from typing import Any

import pytest

from workron.core.model.job import JobSpec
from workron.core.model.workflow import WorkflowSpec
from workron.core.plan import Kind
from workron.core.planner import digest

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
    assert digest(Kind.WORKFLOW, spec) == hashlib.sha256(text.encode()).hexdigest()


def test_digest_of_a_job_is_that_of_its_text() -> None:
    text = b'{"kind":"Job","spec":{"command":"echo"}}'
    spec = JobSpec.parse({"command": "echo", "pool": "default"})
    assert digest(Kind.JOB, spec) == hashlib.sha256(text).hexdigest()
