"""Metadata: names, labels, and what the API server adds."""

import pydantic
import pytest

from workron.core.model.meta import ObjectMeta


def test_metadata_has_the_default_namespace_when_none_is_given() -> None:
    assert ObjectMeta.parse({"name": "a"}).namespace == "default"


def test_metadata_is_rejected_when_it_has_no_name() -> None:
    with pytest.raises(pydantic.ValidationError, match="set name or generateName"):
        ObjectMeta.parse({"labels": {"a": "b"}})


def test_metadata_accepts_a_prefix_of_a_name() -> None:
    assert ObjectMeta.parse({"generateName": "etl-"}).generate_name == "etl-"


def test_metadata_drops_the_fields_that_the_api_server_adds() -> None:
    added = {
        "uid": "5",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": "1",
        "generation": 1,
        "managedFields": [{}],
        "ownerReferences": [{}],
        "finalizers": ["a"],
        "selfLink": "/a",
        "deletionTimestamp": None,
    }
    assert ObjectMeta.parse({"name": "a"} | added) == ObjectMeta(name="a")


@pytest.mark.parametrize("labels", [{"a b": "c"}, {"a": "c d"}, {"a": True}, {"a": None}, ["a"]])
def test_labels_are_rejected_when_kubernetes_rejects_them(labels: object) -> None:
    with pytest.raises(pydantic.ValidationError, match="labels"):
        ObjectMeta.parse({"name": "a", "labels": labels})


def test_annotations_are_rejected_when_they_are_too_large_together() -> None:
    half = "é" * 70_000
    assert ObjectMeta.parse({"name": "a", "annotations": {"x": half}}).annotations == {"x": half}
    with pytest.raises(pydantic.ValidationError, match="280,002 bytes in all"):
        ObjectMeta.parse({"name": "a", "annotations": {"x": half, "y": half}})
