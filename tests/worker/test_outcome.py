"""From a claim to a task, and from the end of a command to its result."""

import json
import uuid
from typing import Any

import pytest

from workron.core import payloads
from workron.core.ids import ClaimId, Fence, JobId
from workron.core.jobspec import Spec
from workron.core.states import Reason
from workron.store.types import ClaimedJob
from workron_runner import protocol
from workron_worker import outcome


def _claimed(**spec: Any) -> ClaimedJob:
    return ClaimedJob(
        job=JobId(1),
        claim=ClaimId(uuid.uuid4()),
        attempt=1,
        failures=0,
        losses=0,
        fence=Fence(1),
        namespace="default",
        run="job",
        name="job",
        index=None,
        spec=Spec({"command": "true"} | spec),
    )


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        ({}, 0),
        ({"outputStreamBytes": 0}, 0),
        ({"outputStreamBytes": 5000}, 5000),
        ({"outputStreamBytes": payloads.MAX_STREAM_BYTES}, payloads.MAX_STREAM_BYTES),
        ({"outputStreamBytes": 10**12}, payloads.MAX_STREAM_BYTES),
        ({"outputStreamBytes": 7, "outputStreamBytesColour": "red"}, 7),
    ],
)
def test_stream_limit_is_that_of_the_spec_up_to_the_maximum(
    spec: dict[str, Any], limit: int
) -> None:
    assert outcome.task_of(_claimed(**spec), "default", {}).stream_limit_bytes == limit


@pytest.mark.parametrize("wrong", [-1, "7", 1.5, True])
def test_stream_limit_is_rejected_when_it_is_not_a_number_of_bytes(wrong: Any) -> None:
    with pytest.raises(ValueError, match="outputStreamBytes"):
        outcome.task_of(_claimed(outputStreamBytes=wrong), "default", {})


def test_shell_is_that_of_the_spec() -> None:
    shells = [outcome.task_of(_claimed(**one), "default", {}).shell for one in (
        {}, {"shell": "bash"}, {"shell": ["bash", "-e", "-c"]})]  # fmt: skip
    assert shells == [("sh", "-c"), ("bash", "-c"), ("bash", "-e", "-c")]


def test_variable_has_the_value_of_its_caller() -> None:
    spec = {"env": [{"name": "A", "fromEnv": "B"}, {"name": "C", "value": "d"}]}
    task = outcome.task_of(_claimed(**spec), "default", {"B": "secret", "C": "other"})
    assert (task.environment["A"], task.environment["C"]) == ("secret", "d")
    with pytest.raises(outcome.MissingVariableError, match=r"the variable B .* has no value"):
        outcome.task_of(_claimed(**spec), "default", {"A": "x"})


@pytest.mark.parametrize("value", [0, False, "", "ü\n", [1, {"a": None}], {"deep": [[[]]]}, 1.5])
def test_result_is_parsed_as_json(value: Any) -> None:
    assert outcome.parse_result(json.dumps(value).encode()) == value


@pytest.mark.parametrize("raw", [b"", b" \n", b"null"])
def test_result_is_none_when_it_is_empty_or_null(raw: bytes) -> None:
    assert outcome.parse_result(raw) is None


def test_result_is_accepted_when_it_has_exactly_the_maximum_depth() -> None:
    value: Any = "text"
    for _ in range(64):
        value = [value]
    assert outcome.parse_result(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"[1, 2", "is not JSON"),
        (b"NaN", "NaN is not a JSON number"),
        (b"[-Infinity]", "-Infinity is not a JSON number"),
        (b"1e999", "out of range: 1e999"),
        (b"9" * 16_000, "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 16_000, "nested too deeply: more than 64 levels"),
        (b"[" * 65 + b"]" * 65, "nested too deeply"),
        (b'{"a":' * 65 + b"0" + b"}" * 65, "nested too deeply"),
        (rb'{"a\u0000": 1}', "NUL character"),
        (rb'[{"a": "\ud800"}]', "half of a surrogate pair"),
    ],
)
def test_result_is_rejected_with_a_message(raw: bytes, message: str) -> None:
    with pytest.raises(outcome.ResultError, match=message):
        outcome.parse_result(raw)


def test_message_names_limit_and_peak_when_memory_ran_short() -> None:
    ended = protocol.Ended(
        "", "memory", None, 9, 0.0, 0.0, 300 * 2**20, 0, None, limit_bytes=512 * 2**20
    )
    task = outcome.task_of(_claimed(), "default", {})
    end = outcome.judge_end(task, ended, b"out", b"", is_killed=False)
    assert end.message == (
        "the command was killed near the memory limit of 512 MiB that all commands of its "
        "worker share; it used up to 300 MiB"
    )
    assert (end.reason, end.exit_code, end.output) == (Reason.OUT_OF_MEMORY, 137, b"out")
