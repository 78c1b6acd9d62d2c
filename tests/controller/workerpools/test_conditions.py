"""What keeps a pool from its workers, and what is told of that."""

import pytest

from tests.controller.workerpools.observed_objects import pod, replica_set, sight, starting, waiting
from workron.core import errors
from workron_controller.kube import errors as api_errors
from workron_controller.kube.conditions import StatusReason
from workron_controller.workerpools import status
from workron_controller.workerpools.observed import ObservedPool

_COMMAND = (
    "enables them with: kubectl create rolebinding workron-pools --clusterrole=workron-pools"
    " --serviceaccount=workron:workron-controller --namespace lab"
)


@pytest.mark.parametrize(
    ("seen", "reason", "says"),
    [
        (sight([replica_set()], pod("a")), None, ""),
        (sight([replica_set()], starting("a")), None, ""),
        (
            sight([replica_set()], starting("a", containers=[waiting("ErrImagePull")])),
            "ImagePullFailed",
            "container runner of pod a has no image: ErrImagePull",
        ),
        (
            sight([], starting("a", containers=[waiting("ImagePullBackOff", message="no tag")])),
            "ImagePullFailed",
            "ImagePullBackOff: no tag",
        ),
        (
            sight([], starting("a", containers=[waiting("CreateContainerConfigError")])),
            "PodsNotReady",
            "does not run: CreateContainerConfigError",
        ),
        (
            sight([], starting("a", containers=[waiting("CrashLoopBackOff", restarts=1)])),
            "PodsNotReady",
            "does not run after 1 restart: CrashLoopBackOff",
        ),
        (
            sight([], starting("a", containers=[waiting("CrashLoopBackOff", restarts=4)])),
            "PodsNotReady",
            "does not run after 4 restarts: CrashLoopBackOff",
        ),
        (
            sight([replica_set(failure='pods "x" is forbidden: exceeded quota: small')]),
            "QuotaExceeded",
            "exceeded quota: small",
        ),
        (
            sight([replica_set(failure="violates PodSecurity")]),
            "PodsNotReady",
            "cannot create pods: violates PodSecurity",
        ),
        (
            sight([], starting("a", unschedulable="0/3 nodes are available")),
            "Unschedulable",
            "no node for pod a: 0/3 nodes",
        ),
        (sight([], starting("a", containers=[waiting("ContainerCreating")])), None, ""),
        (sight([], pod("a", is_terminating=True, containers=[waiting("ErrImagePull")])), None, ""),
    ],
    ids=[
        *(
            "all is well",
            "it starts",
            "no image",
            "no image for long",
            "it never ran",
            "it crashed",
        ),
        *("it crashes", "quota"),
        *("policy", "no node", "it is being made", "it goes anyway"),
    ],
)
def test_trouble_with_pods(seen: ObservedPool, reason: str | None, says: str) -> None:
    why = status.reason_from_pods(seen)
    assert (why and why.reason) == reason
    assert says in (why.message if why else "")


def test_gravest_trouble_is_the_one_that_is_told() -> None:
    crashing = starting("a", containers=[waiting("CrashLoopBackOff")])
    imageless = starting("b", containers=[waiting("ErrImagePull")])
    nowhere = starting("c", unschedulable="no node")
    why = status.reason_from_pods(sight([], crashing, imageless, nowhere))
    assert why is not None
    assert why.reason == "ImagePullFailed"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (api_errors.ForbiddenError("403 secrets is forbidden"), "NamespaceNotEnabled"),
        (api_errors.ForbiddenError("exceeded quota: small"), "QuotaExceeded"),
        (api_errors.ForbiddenError("because it is being terminated"), "NamespaceTerminating"),
        (api_errors.InvalidError("422 mountPath: must be unique"), "InvalidSpec"),
        (api_errors.UnreachableError("no answer"), "ApiUnavailable"),
        (api_errors.BusyError("429"), "ApiUnavailable"),
        (api_errors.UnauthorizedError("401"), "ApiUnavailable"),
        (api_errors.ConflictError("409"), None),
        (api_errors.ObjectNotFoundError("404"), None),
        (errors.PermissionDeniedError("may make no roles"), "DatabasePermissionDenied"),
        (errors.StoreUnreachableError("no answer"), "DatabaseUnavailable"),
        (errors.StoreFullError("disk"), "DatabaseUnavailable"),
    ],
    ids=str,
)
def test_meaning_of_an_error(error: errors.WorkronError, reason: str | None) -> None:
    why = status.reason_for_error(error, "lab", "workron")
    assert (why and why.reason) == reason


def test_namespace_that_is_closed_is_told_with_the_command_that_opens_it() -> None:
    why = status.reason_for_error(api_errors.ForbiddenError("403"), "lab", "workron")
    assert why is not None
    assert why.message.endswith(_COMMAND)


def _told(trouble: StatusReason | None, ready: int, wanted: int) -> dict[str, tuple[bool, str]]:
    found = status.pool_conditions(trouble, ready, wanted)
    return {one.type: (one.holds, one.reason) for one in found}


@pytest.mark.parametrize(
    ("reason", "ready", "wanted", "told"),
    [
        (None, 2, 2, {"Ready": (True, "Ready")}),
        (None, 0, 0, {"Ready": (True, "ScaledToZero")}),
        (None, 3, 1, {"Ready": (True, "Ready")}),
        (None, 1, 2, {"Ready": (False, "Starting"), "Reconciling": (True, "Starting")}),
        (
            "ImagePullFailed", 0, 2,
            {"Ready": (False, "ImagePullFailed"), "Stalled": (True, "ImagePullFailed")},
        ),
        ("ImagePullFailed", 2, 2, {"Ready": (True, "Ready"), "Stalled": (True, "ImagePullFailed")}),
        (
            "InvalidSpec", 2, 2,
            {"Ready": (False, "InvalidSpec"), "Stalled": (True, "InvalidSpec")},
        ),
        (
            "NamespaceNotEnabled", 0, 0,
            {"Ready": (False, "NamespaceNotEnabled"), "Stalled": (True, "NamespaceNotEnabled")},
        ),
        (
            "ConnectionLimit", 2, 2,
            {"Ready": (True, "Ready"), "Stalled": (True, "ConnectionLimit")},
        ),
        (
            "DatabaseUnavailable", 2, 2,
            {"Ready": (False, "DatabaseUnavailable"), "Reconciling": (True, "DatabaseUnavailable")},
        ),
        ("ApiUnavailable", 2, 2, {"Ready": (True, "Ready")}),
        (
            "Unschedulable", 1, 2,
            {"Ready": (False, "Unschedulable"), "Reconciling": (True, "Unschedulable")},
        ),
    ],
)  # fmt: skip
def test_conditions(
    reason: str | None, ready: int, wanted: int, told: dict[str, tuple[bool, str]]
) -> None:
    trouble = None if reason is None else StatusReason(reason, "because")
    assert _told(trouble, ready, wanted) == told


def test_job_is_told_of_what_somebody_has_to_mend_and_by_whom() -> None:
    assert status.reason_for_jobs(None, "gpu") is None
    assert status.reason_for_jobs(StatusReason("DatabaseUnavailable", "no answer"), "gpu") is None
    closed = StatusReason("NamespaceNotEnabled", "kubectl …")
    assert status.reason_for_jobs(closed, "gpu") == closed
    bad = StatusReason("ImagePullFailed", "no tag")
    assert status.reason_for_jobs(bad, "gpu") == StatusReason(
        "ImagePullFailed", "WorkerPool gpu: no tag"
    )
