"""Objects of a pool, parsed from JSON, and the proofs that a worker is dead."""

from typing import Any

import pytest

from tests.controller.workerpools.observed_objects import POOL
from workron_controller.workerpools import observed
from workron_controller.workerpools.observed import ObservedPod, ObservedPool

Raw = dict[str, Any]


def _owned(name: str, owner: str | None, **fields: Any) -> Raw:
    owners = [{"uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "uid": f"{name}-uid", "ownerReferences": owners}
    return {"metadata": metadata | fields.pop("metadata", {})} | fields


def _replica_set(name: str = "set", owner: str | None = "pool-uid", **fields: Any) -> Raw:
    return _owned(name, owner, spec={"replicas": 2}) | fields


def _pod(**status: Any) -> ObservedPod:
    raw = _owned("pod", "set-uid", spec={"nodeName": "node"}, status=status)
    return observed.observe(POOL, [_replica_set()], [raw]).pods[0]


def _ended(name: str = "agent", **fields: Any) -> Raw:
    return {"name": name, "state": {"terminated": {"exitCode": 0} | fields}}


_RUNS: Raw = {"name": "runner", "state": {"running": {}}}


def test_objects_of_other_owners_are_ignored() -> None:
    sets = [_replica_set(), _replica_set("foreign", None), _replica_set("former", "former-uid")]
    pods = [_owned("pod", "set-uid"), _owned("orphan", None), _owned("other", "foreign-uid")]
    found = observed.observe(POOL, sets, pods)
    assert [one.name for one in found.replica_sets] == ["set"]
    assert [one.name for one in found.pods] == ["pod"]


def test_pod_is_parsed_when_all_optional_fields_are_missing() -> None:
    bare = _pod()
    assert (bare.is_ready, bare.is_live, bare.deletion_cost, bare.containers) == (
        False,
        True,
        0,
        [],
    )


def test_pod_is_parsed() -> None:
    annotations = {observed.DELETION_COST: "-7"}
    metadata = {"annotations": annotations, "creationTimestamp": "2026-01-01T00:00:00Z"}
    ready = {"type": "Ready", "status": "True"}
    raw = _owned("pod", "set-uid", metadata=metadata, status={"conditions": [ready]})
    [pod] = observed.observe(POOL, [_replica_set()], [raw]).pods
    assert (pod.deletion_cost, pod.created_at, pod.is_ready, pod.node) == (
        -7,
        "2026-01-01T00:00:00Z",
        True,
        None,
    )


def test_deletion_cost_is_zero_when_it_is_not_a_number() -> None:
    raw = _owned("pod", "set-uid", metadata={"annotations": {observed.DELETION_COST: "cheap"}})
    assert observed.observe(POOL, [_replica_set()], [raw]).pods[0].deletion_cost == 0


def test_replica_sets_are_sorted_by_age() -> None:
    young = _replica_set("young", metadata={"creationTimestamp": "2026-01-02T00:00:00Z"})
    young = _owned("young", "pool-uid", metadata={"creationTimestamp": "2026-01-02T00:00:00Z"})
    old = _owned("old", "pool-uid", metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})
    assert [one.name for one in observed.observe(POOL, [young, old], []).replica_sets] == [
        "old",
        "young",
    ]


def test_worker_count_includes_terminating_and_pending_pods() -> None:
    ending = _owned("ending", "set-uid", metadata={"deletionTimestamp": "x"})
    over = _owned("over", "set-uid", status={"phase": "Failed"})
    found = observed.observe(POOL, [_replica_set()], [ending, over])
    assert (found.worker_count, found.ready_count) == (3, 0)


def test_counts_are_zero_when_the_pool_is_empty() -> None:
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
        "all have ended, with sidecar",
        "restarting",
        "no container was observed",
        "phase only",
        "sidecar is running",
        "container is running",
        "end was not observed",
        "unknown phase",
    ],
)
def test_proof_from_pod(status: Raw, is_proof: bool) -> None:
    assert (observed.proof_from_pod(_pod(**status)) is not None) == is_proof


def test_deletion_is_not_a_proof_of_death() -> None:
    raw = _owned("pod", "set-uid", metadata={"deletionTimestamp": "x"})
    [pod] = observed.observe(POOL, [_replica_set()], [raw]).pods
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
