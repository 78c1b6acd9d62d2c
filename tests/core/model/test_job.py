"""Job: defaults, bounds and the rules between its fields."""

from datetime import timedelta

import pydantic
import pytest

from workron.core.jobspec import OnLeaseLost, Overlap
from workron.core.model.job import Dependency, Job, JobSpec
from workron.core.model.status import JobStatus
from workron.core.plan import Kind
from workron.core.states import State
from workron.core.verdict import Condition

_BOUNDS = {
    "priority": (-1000, 1000),
    "maxAttempts": (1, 100),
    "maxWorkerLosses": (1, 100),
    "outputLimitBytes": (0, 1048576),
    "outputStreamBytes": (0, 67108864),
    "ttlSecondsAfterFinished": (0, 315360000),
}


def _spec(**fields: object) -> JobSpec:
    return JobSpec.parse({"command": "true"} | fields)


def test_job_has_the_documented_defaults() -> None:
    spec = _spec()
    assert (spec.pool, spec.priority, spec.max_attempts, spec.max_worker_losses) == (
        "default",
        0,
        3,
        5,
    )
    assert (spec.overlap, spec.on_lease_lost) == (Overlap.ALLOW, OnLeaseLost.KILL)
    assert (spec.output_limit_bytes, spec.output_stream_bytes) == (65536, 0)
    assert spec.ttl_seconds_after_finished is None
    assert (spec.backoff.initial, spec.backoff.factor) == (timedelta(seconds=1), 2)
    assert spec.backoff.max == timedelta(minutes=5)
    assert (spec.suspend, spec.cancel) == (False, False)
    assert (spec.timeout, spec.deadline, spec.start_after) == (None, None, None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "set exactly one of command and argv"),
        ({"command": "true", "argv": ["true"]}, "set exactly one of command and argv"),
        ({"command": " "}, "is blank"),
        ({"argv": []}, "argv"),
        ({"argv": [""]}, "the program, is blank"),
        ({"argv": ["a", None]}, "argv.1"),
        ({"argv": "true"}, "tuple_type"),
    ],
)
def test_job_is_rejected_when_it_does_not_have_one_command(
    fields: dict[str, object], message: str
) -> None:
    with pytest.raises(pydantic.ValidationError, match=message):
        JobSpec.parse(fields)


@pytest.mark.parametrize("field", _BOUNDS)
def test_number_is_accepted_up_to_its_bounds(field: str) -> None:
    low, high = _BOUNDS[field]
    assert _spec(**{field: low}) != _spec(**{field: high})
    for beyond in (low - 1, high + 1):
        with pytest.raises(pydantic.ValidationError, match=f"{field}\n.*equal"):
            _spec(**{field: beyond})


def test_exit_code_is_rejected_when_it_is_in_both_lists() -> None:
    assert _spec(retryOn=[75, 76], failOn=[2]).retry_on == (75, 76)
    with pytest.raises(pydantic.ValidationError, match="exit code 75 is in retryOn and in failOn"):
        _spec(retryOn=[1, 75], failOn=[75])


@pytest.mark.parametrize("code", [0, 256, -1, "1", True])
def test_exit_code_is_rejected_when_it_is_out_of_range(code: object) -> None:
    with pytest.raises(pydantic.ValidationError, match=r"failOn\.0"):
        _spec(failOn=[code])


def test_variable_is_rejected_when_it_is_given_twice() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A"}]
    with pytest.raises(pydantic.ValidationError, match="'A' is given 2 times"):
        _spec(env=env)


def test_dependency_is_on_the_success_of_a_job_by_default() -> None:
    assert _spec(dependsOn=[{"name": "a"}]).depends_on == (
        Dependency(name="a", kind=Kind.JOB, when=Condition.SUCCEEDED),
    )


@pytest.mark.parametrize("wrong", [{"kind": "Array"}, {"when": "Member"}, {"when": "succeeded"}])
def test_dependency_is_rejected_when_kind_or_condition_is_unknown(wrong: dict[str, str]) -> None:
    with pytest.raises(pydantic.ValidationError, match=next(iter(wrong))):
        _spec(dependsOn=[{"name": "a"} | wrong])


def test_dependency_is_rejected_when_it_is_given_twice() -> None:
    twice = [{"name": "a"}, {"name": "a", "kind": "Workflow"}, {"name": "a", "when": "Failed"}]
    with pytest.raises(pydantic.ValidationError, match="Job 'a' is given 2 times"):
        _spec(dependsOn=twice)


def test_status_is_ignored_when_it_comes_from_a_manifest() -> None:
    written = {"metadata": {"name": "a"}, "spec": {"command": "true"}, "status": {"any": "thing"}}
    job = Job.parse(written)
    assert job.status is None
    reported = job.model_copy(update={"status": JobStatus(phase=State.FAILED, exit_code=2)})
    assert reported.as_manifest()["status"] == {"phase": "Failed", "exitCode": 2}
