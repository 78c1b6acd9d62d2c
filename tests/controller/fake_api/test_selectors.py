"""Selectors, as the fake reads them."""

import pytest

from tests.controller.fake_api import selectors
from tests.controller.fake_api.kinds import JOB
from tests.controller.fake_api.refused import RefusedError

_BODY = {
    "metadata": {"name": "one", "namespace": "ns", "labels": {"app": "x", "a.b/c": "1"}},
    "spec": {"pool": "gpu"},
}


@pytest.mark.parametrize(
    ("labels", "is_chosen"),
    [
        ("app=x", True),
        ("app==y", False),
        ("app!=y,a.b/c=1", True),
        ("none!=y", True),
        ("app", True),
        ("!app", False),
        ("app in (x, y),app notin (z)", True),
        ("app notin (x,y)", False),
    ],
)
def test_label_selector_chooses(labels: str, is_chosen: bool) -> None:
    assert selectors.read(JOB, {"labelSelector": labels})(_BODY) is is_chosen


@pytest.mark.parametrize(
    ("fields", "is_chosen"),
    [
        ("metadata.name=one,metadata.namespace=ns", True),
        ("spec.pool!=gpu", False),
        ("status.phase=", True),
        ("status.phase!=Failed", True),
    ],
)
def test_field_selector_chooses(fields: str, is_chosen: bool) -> None:
    assert selectors.read(JOB, {"fieldSelector": fields})(_BODY) is is_chosen


@pytest.mark.parametrize(
    "query",
    [{"labelSelector": "!!"}, {"fieldSelector": "spec.none=1"}, {"fieldSelector": "spec.pool"}],
)
def test_selector_that_makes_no_sense_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(RefusedError) as caught:
        selectors.read(JOB, query)
    assert caught.value.code == 400
