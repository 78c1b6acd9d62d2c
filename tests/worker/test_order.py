"""From a claim to a task: what older and newer programs wrote is read as far as it can be."""

import uuid
from typing import Any

import pytest

from workron.core import payloads
from workron.core.ids import ClaimId, Fence, JobId
from workron.core.jobspec import Spec
from workron.store.types import ClaimedJob
from workron_worker import outcome


def _claimed(**spec: Any) -> ClaimedJob:
    claim = ClaimId(uuid.uuid4())
    return ClaimedJob(
        job=JobId(1),
        claim=claim,
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
    ("spec", "streamed"),
    [
        ({}, 0),
        ({"outputStreamBytes": 0}, 0),
        ({"outputStreamBytes": 5000}, 5000),
        ({"outputStreamBytes": payloads.MAX_STREAM_BYTES}, payloads.MAX_STREAM_BYTES),
        ({"outputStreamBytes": 10**12}, payloads.MAX_STREAM_BYTES),
        ({"outputStreamBytes": 7, "outputStreamBytesColour": "red"}, 7),
    ],
)
def test_stream_is_what_the_spec_asks_for_as_far_as_this_program_goes(
    spec: dict[str, Any], streamed: int
) -> None:
    assert outcome.task_of(_claimed(**spec)).stream_limit_bytes == streamed


@pytest.mark.parametrize("wrong", [-1, "7", 1.5, True])
def test_stream_that_is_no_number_of_bytes_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="outputStreamBytes"):
        outcome.task_of(_claimed(outputStreamBytes=wrong))
