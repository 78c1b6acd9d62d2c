"""The JSON schema of a kind, as definitions and pages take it."""

import pytest

from workron.core import duration
from workron.core.model import json_schema
from workron.core.model.job import Job
from workron.core.model.meta import Resource
from workron.core.model.pool import WorkerPool
from workron.core.model.workflow import Workflow


def test_schema_comes_with_the_records_that_it_refers_to() -> None:
    schema, records = json_schema.of(Job)
    assert schema["properties"]["spec"]["$ref"] == "#/$defs/JobSpec"
    assert {"JobSpec", "EnvVar", "JobStatus"} <= set(records)


@pytest.mark.parametrize("kind", [Job, Workflow, WorkerPool])
def test_default_that_is_a_duration_is_written_as_a_person_would(kind: type[Resource]) -> None:
    _, records = json_schema.of(kind)
    written = {
        f"{name}.{field}": what["default"]
        for name, record in records.items()
        for field, what in record.get("properties", {}).items()
        if what.get("pattern") == f"^{duration.PATTERN}$" and what.get("default")
    }
    assert all(duration.render(duration.parse(text)) == text for text in written.values())
    assert written
