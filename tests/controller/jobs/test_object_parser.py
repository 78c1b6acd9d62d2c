"""Identity and pools of an object, whatever a user wrote into it."""

from typing import Any

import pytest

from tests.controller import cluster
from workron.core.plan import Kind
from workron_controller.jobs import object_parser


@pytest.mark.parametrize(
    ("tasks", "pools"),
    [
        ([{"name": "a"}, {"name": "b", "pool": "gpu"}, {"name": "c"}], ("default", "gpu")),
        ([{"pool": 7}, {"pool": None}, "a", None, ["b"], {"pool": "gpu"}], ("gpu",)),
        ("all of them", ()),
        (None, ()),
    ],
)
def test_workflow_has_the_pools_of_its_tasks(tasks: Any, pools: tuple[str, ...]) -> None:
    raw = cluster.edited(cluster.workflow("flow"), tasks=tasks)
    assert object_parser.parse_object(Kind.WORKFLOW, raw).pools == pools


@pytest.mark.parametrize("spec", [None, [], "spec", {"suspend": "yes"}])
def test_object_is_parsed_when_its_spec_is_malformed(spec: Any) -> None:
    observed = object_parser.parse_object(Kind.JOB, cluster.job("odd") | {"spec": spec})
    assert (observed.name, observed.pools, observed.is_suspended) == ("odd", (), False)
