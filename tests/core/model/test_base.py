"""The base of all models: strictness, manifest names, nulls, and writing of set fields."""

import pydantic
import pytest

from workron.core.model import base
from workron.core.model.job import EnvVar, Job, JobSpec


def test_record_is_built_by_attribute_name_in_python() -> None:
    assert JobSpec(argv=("true",), max_attempts=1).max_attempts == 1


def test_record_accepts_only_manifest_names_when_it_is_parsed() -> None:
    with pytest.raises(pydantic.ValidationError, match="max_attempts"):
        JobSpec.parse({"command": "true", "max_attempts": 1})


@pytest.mark.parametrize("wrong", [{"maxAttempts": "1"}, {"suspend": 1}, {"pool": 5}])
def test_record_converts_no_types(wrong: dict[str, object]) -> None:
    with pytest.raises(pydantic.ValidationError):
        JobSpec.parse({"command": "true"} | wrong)


def test_record_is_frozen() -> None:
    spec = JobSpec(command="true")
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        spec.pool = "other"  # type: ignore[misc]


def test_null_counts_as_absent_when_the_field_is_known() -> None:
    assert JobSpec.parse({"command": "true", "pool": None}).pool == "default"
    with pytest.raises(pydantic.ValidationError, match="missing"):
        EnvVar.parse({"name": None})


def test_null_is_rejected_when_the_field_is_unknown() -> None:
    with pytest.raises(pydantic.ValidationError, match="extra_forbidden"):
        JobSpec.parse({"command": "true", "pol": None})


def test_manifest_has_the_fields_that_were_set_and_no_defaults() -> None:
    spec = JobSpec.parse({"command": "true", "timeout": "90s", "pool": "default"})
    assert spec.as_manifest() == {"command": "true", "timeout": "1m30s", "pool": "default"}


def test_manifest_has_its_kind_when_it_was_not_set() -> None:
    job = Job.parse({"metadata": {"name": "a"}, "spec": {"command": "true"}})
    assert job.as_manifest() == {
        "apiVersion": "workron.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "a"},
        "spec": {"command": "true"},
    }


def test_field_names_include_manifest_and_attribute_names() -> None:
    assert base.field_names(EnvVar) == {"name", "value", "from_env", "fromEnv"}
    assert {"maxAttempts", "max_attempts"} <= base.field_names(JobSpec)
