"""The examples of the manifest reference are valid and appear on the page."""

import json
import pathlib
import re
from datetime import datetime
from typing import Any

import pytest
import yaml

from docs import manifest_examples
from workron.core.manifest.load import ManifestSource, load
from workron.core.model.base import Record
from workron.core.model.job import JobSpec
from workron.core.model.meta import API_VERSION
from workron.core.model.workerpool import WorkerPoolSpec
from workron.core.model.workflow import Task, WorkflowSpec

_PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "reference" / "manifest.md").read_text(
    encoding="utf-8"
)
_RECORDS: dict[str, type[Record]] = {
    "JobSpec": JobSpec,
    "Task": Task,
    "WorkerPoolSpec": WorkerPoolSpec,
    "WorkflowSpec": WorkflowSpec,
}
_OBVIOUS = {"command", "env", "image", "name", "tasks"}
_FIELD_EXAMPLES = [
    (record, *example.split("\n\n"))
    for record, examples in manifest_examples.FIELD_EXAMPLES.items()
    for example in examples
]


def _fields(record: str) -> set[str]:
    return {field.alias or name for name, field in _RECORDS[record].__pydantic_fields__.items()}


def _named_fields(record: str, text: str) -> set[str]:
    """Return the fields of a record that a sentence names first in its code spans."""
    return {span.partition(":")[0] for span in re.findall("`([^`]+)`", text)} & _fields(record)


def _spec(record: str, example: str) -> Any:
    spec = yaml.safe_load(example)
    if record != "Task":
        return spec
    upstreams = [{"name": up["name"], "command": "true"} for up in spec.get("dependsOn", ())]
    return {"tasks": [spec, *upstreams]}


@pytest.mark.parametrize("name", manifest_examples.EXAMPLES)
def test_example_is_valid(name: str) -> None:
    source = ManifestSource(name, manifest_examples.EXAMPLES[name].encode())
    assert len(load([source])) == 1


@pytest.mark.parametrize("name", manifest_examples.EXAMPLES)
def test_example_is_on_the_page_at_its_record(name: str) -> None:
    assert f"\n## {name}\n" in _PAGE
    assert manifest_examples.EXAMPLES[name] in _PAGE


@pytest.mark.parametrize(("record", "text", "example"), _FIELD_EXAMPLES)
def test_example_of_a_field_is_valid_and_uses_it(record: str, text: str, example: str) -> None:
    spec = _spec(record, example)
    kind = "Workflow" if record == "Task" else record.removesuffix("Spec")
    document = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": "example"},
        "spec": spec,
    }
    source = ManifestSource("example", json.dumps(document, default=_as_timestamp).encode())
    assert len(load([source])) == 1
    named = _named_fields(record, text)
    assert named
    assert named <= yaml.safe_load(example).keys()


def _as_timestamp(value: datetime) -> str:
    return value.isoformat()


@pytest.mark.parametrize(("record", "text", "example"), _FIELD_EXAMPLES)
def test_example_of_a_field_is_on_the_page_at_its_record(
    record: str, text: str, example: str
) -> None:
    _, _, section = _PAGE.partition(f"\n## {record}\n")
    section, _, _ = section.partition("\n## ")
    assert f"{text}\n\n```yaml\n{example}```\n" in section + "\n"


@pytest.mark.parametrize("record", _RECORDS)
def test_field_has_an_example_when_it_is_not_obvious(record: str) -> None:
    shown = {
        field
        for one, text, _ in _FIELD_EXAMPLES
        if one in {record, "JobSpec" if record == "Task" else record}
        for field in _named_fields(one, text)
    }
    assert _fields(record) - shown - _OBVIOUS == set()
