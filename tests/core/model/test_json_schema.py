"""The JSON schema of a kind, for custom resource definitions and pages."""

import pytest

from workron.core import formats
from workron.core.model import meta
from workron.core.model.job import Job
from workron.core.model.meta import Resource
from workron.core.model.workerpool import WorkerPool
from workron.core.model.workflow import Workflow


def test_schema_is_returned_with_the_records_that_it_refers_to() -> None:
    schema, records = meta.json_schema(Job)
    assert schema["properties"]["spec"]["$ref"] == "#/$defs/JobSpec"
    assert {"JobSpec", "EnvVar", "JobStatus"} <= set(records)


@pytest.mark.parametrize("kind", [Job, Workflow, WorkerPool])
def test_default_is_written_as_in_a_manifest_when_it_is_a_duration(kind: type[Resource]) -> None:
    _, records = meta.json_schema(kind)
    written = {
        f"{name}.{field}": what["default"]
        for name, record in records.items()
        for field, what in record.get("properties", {}).items()
        if what.get("pattern") == f"^{formats.DURATION_PATTERN}$" and what.get("default")
    }
    assert all(
        formats.format_duration(formats.parse_duration(text)) == text for text in written.values()
    )
    assert written
