"""What the API server tells of a pool, and what proves one of its workers dead."""

from typing import Any

import pytest

from tests.controller.workerpools.observed_objects import POOL
from workron_controller.workerpools import observed
from workron_controller.workerpools.observed import ObservedPod, ObservedPool

Raw = dict[str, Any]


def _owned(name: str, owner: str | None, **about: Any) -> Raw:
    owners = [{"uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "uid": f"{name}-uid", "ownerReferences": owners}
    return {"metadata": metadata | about.pop("metadata", {})} | about


def _set(name: str = "set", owner: str | None = "pool-uid", **about: Any) -> Raw:
    return _owned(name, owner, spec={"replicas": 2}) | about


def _pod(**status: Any) -> ObservedPod:
    raw = _owned("pod", "set-uid", spec={"nodeName": "node"}, status=status)
    return observed.observe(POOL, [_set()], [raw]).pods[0]


def _ended(name: str = "agent", **about: Any) -> Raw:
    return {"name": name, "state": {"terminated": {"exitCode": 0} | about}}


_RUNS: Raw = {"name": "runner", "state": {"running": {}}}


def test_what_only_bears_the_labels_is_somebody_elses() -> None:
    sets = [_set(), _set("foreign", None), _set("former", "former-uid")]
    pods = [_owned("pod", "set-uid"), _owned("stray", None), _owned("other", "foreign-uid")]
    found = observed.observe(POOL, sets, pods)
    assert [one.name for one in found.replica_sets] == ["set"]
    assert [one.name for one in found.pods] == ["pod"]


def test_object_with_nothing_in_it_is_seen_all_the_same() -> None:
    bare = _pod()
    assert (bare.is_ready, bare.is_live, bare.deletion_cost, bare.containers) == (
        False,
        True,
        0,
        [],
    )


def test_pod_is_seen_as_it_is() -> None:
    annotations = {observed.DELETION_COST: "-7"}
    metadata = {"annotations": annotations, "creationTimestamp": "2026-01-01T00:00:00Z"}
    ready = {"type": "Ready", "status": "True"}
    raw = _owned("pod", "set-uid", metadata=metadata, status={"conditions": [ready]})
    [pod] = observed.observe(POOL, [_set()], [raw]).pods
    assert (pod.deletion_cost, pod.created_at, pod.is_ready, pod.node) == (
        -7,
        "2026-01-01T00:00:00Z",
        True,
        None,
    )


def test_cost_that_is_no_number_is_none() -> None:
    raw = _owned("pod", "set-uid", metadata={"annotations": {observed.DELETION_COST: "cheap"}})
    assert observed.observe(POOL, [_set()], [raw]).pods[0].deletion_cost == 0


def test_sets_go_by_age() -> None:
    young = _set("young", metadata={"creationTimestamp": "2026-01-02T00:00:00Z"})
    young = _owned("young", "pool-uid", metadata={"creationTimestamp": "2026-01-02T00:00:00Z"})
    old = _owned("old", "pool-uid", metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})
    assert [one.name for one in observed.observe(POOL, [young, old], []).replica_sets] == [
        "old",
        "young",
    ]


def test_present_are_those_that_end_and_those_that_are_still_to_be_made() -> None:
    ending = _owned("ending", "set-uid", metadata={"deletionTimestamp": "x"})
    over = _owned("over", "set-uid", status={"phase": "Failed"})
    found = observed.observe(POOL, [_set()], [ending, over])
    assert (found.worker_count, found.ready_count) == (3, 0)


def test_nothing_is_seen_of_nothing() -> None:
    assert (ObservedPool().worker_count, ObservedPool().ready_count) == (0, 0)


@pytest.mark.parametrize(
    ("status", "is_proof"),
    [
        ({"phase": "Failed", "containerStatuses": [_ended()]}, True),
        ({"phase": "Succeeded", "containerStatuses": [_ended(), _ended("runner")]}, True),
        ({"phase": "Running", "containerStatuses": [_ended()]}, False),
        ({"phase": "Failed", "containerStatuses": []}, False),
        ({"phase": "Failed"}, False),
        (
            {"phase": "Failed", "containerStatuses": [_ended()], "initContainerStatuses": [_RUNS]},
            False,
        ),
        ({"phase": "Failed", "containerStatuses": [_RUNS]}, False),
        (
            {"phase": "Failed", "containerStatuses": [_ended(reason="ContainerStatusUnknown")]},
            False,
        ),
        ({"phase": "Unknown", "containerStatuses": [_ended()]}, False),
    ],
    ids=[
        "all have ended",
        "sidecars too",
        "it will be started again",
        "no container was seen",
        "a phase alone",
        "the runner runs",
        "a phase that is not the kubelet's",
        "its end was not seen",
        "unknown",
    ],
)
def test_proof_of_the_kubelet(status: Raw, is_proof: bool) -> None:
    assert (observed.proof_from_pod(_pod(**status)) is not None) == is_proof


def test_deletion_alone_proves_nothing() -> None:
    raw = _owned("pod", "set-uid", metadata={"deletionTimestamp": "x"})
    [pod] = observed.observe(POOL, [_set()], [raw]).pods
    assert observed.proof_from_pod(pod) is None


@pytest.mark.parametrize(
    ("node", "is_out"),
    [
        ({"spec": {}}, False),
        ({}, False),
        ({"spec": {"taints": [{"key": "node.kubernetes.io/unreachable"}]}}, False),
        ({"spec": {"taints": [{"key": "x"}, {"key": "node.kubernetes.io/out-of-service"}]}}, True),
    ],
    ids=["no taint", "no spec", "unreachable", "out of service"],
)
def test_node_is_out_of_service_when_it_has_the_taint(node: Raw, is_out: bool) -> None:
    assert observed.is_out_of_service(node) == is_out
