"""From a claim to a task: what older and newer programs wrote is read as far as it can be."""

import uuid
from typing import Any

import pytest

from workron.core import output
from workron.core.ids import ClaimId, Fence, JobId
from workron.core.spec import Spec
from workron.store.protocol import Claimed
from workron_worker import order


def _claimed(**spec: Any) -> Claimed:
    claim = ClaimId(uuid.uuid4())
    return Claimed(
        job=JobId(1),
        claim=claim,
        attempt=1,
        failures=0,
        losses=0,
        fence=Fence(1),
        namespace="default",
        root="job",
        name="job",
        index=None,
        spec=Spec({"command": "true"} | spec),
    )


@pytest.mark.parametrize(
    ("spec", "streamed"),
    [
        ({}, 0),
        ({"outputStream": 0}, 0),
        ({"outputStream": 5000}, 5000),
        ({"outputStream": output.STREAM_BYTES}, output.STREAM_BYTES),
        ({"outputStream": 10**12}, output.STREAM_BYTES),
        ({"outputStream": 7, "outputStreamColour": "red"}, 7),
    ],
)
def test_stream_is_what_the_spec_asks_for_as_far_as_this_program_goes(
    spec: dict[str, Any], streamed: int
) -> None:
    assert order.task_of(_claimed(**spec)).stream_bytes == streamed


@pytest.mark.parametrize("wrong", [-1, "7", 1.5, True])
def test_stream_that_is_no_number_of_bytes_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="outputStream"):
        order.task_of(_claimed(outputStream=wrong))
