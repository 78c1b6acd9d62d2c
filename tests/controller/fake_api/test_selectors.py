"""Selectors of the fake API server."""

import pytest

from tests.controller.fake_api import selectors
from tests.controller.fake_api.kinds import JOB
from tests.controller.fake_api.status_errors import StatusError

_BODY = {
    "metadata": {"name": "one", "namespace": "ns", "labels": {"app": "x", "a.b/c": "1"}},
    "spec": {"pool": "gpu"},
}


@pytest.mark.parametrize(
    ("labels", "is_selected"),
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
def test_label_selector(labels: str, is_selected: bool) -> None:
    assert selectors.parse(JOB, {"labelSelector": labels})(_BODY) is is_selected


@pytest.mark.parametrize(
    ("fields", "is_selected"),
    [
        ("metadata.name=one,metadata.namespace=ns", True),
        ("spec.pool!=gpu", False),
        ("status.phase=", True),
        ("status.phase!=Failed", True),
    ],
)
def test_field_selector(fields: str, is_selected: bool) -> None:
    assert selectors.parse(JOB, {"fieldSelector": fields})(_BODY) is is_selected


@pytest.mark.parametrize(
    "query",
    [{"labelSelector": "!!"}, {"fieldSelector": "spec.none=1"}, {"fieldSelector": "spec.pool"}],
)
def test_selector_is_refused_when_it_is_malformed(query: dict[str, str]) -> None:
    with pytest.raises(StatusError) as caught:
        selectors.parse(JOB, query)
    assert caught.value.code == 400
