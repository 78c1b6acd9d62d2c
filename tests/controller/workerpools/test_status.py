"""Problems of a pool, and its conditions."""

import pytest

from tests.controller.workerpools.observed_objects import (
    observed_pool,
    pod,
    replica_set,
    starting,
    waiting,
)
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
    ("observed", "reason", "message"),
    [
        (observed_pool([replica_set()], pod("a")), None, ""),
        (observed_pool([replica_set()], starting("a")), None, ""),
        (
            observed_pool([replica_set()], starting("a", containers=[waiting("ErrImagePull")])),
            "ImagePullFailed",
            "container runner of pod a has no image: ErrImagePull",
        ),
        (
            observed_pool(
                [], starting("a", containers=[waiting("ImagePullBackOff", message="no tag")])
            ),
            "ImagePullFailed",
            "ImagePullBackOff: no tag",
        ),
        (
            observed_pool([], starting("a", containers=[waiting("CreateContainerConfigError")])),
            "PodsNotReady",
            "does not run: CreateContainerConfigError",
        ),
        (
            observed_pool([], starting("a", containers=[waiting("CrashLoopBackOff", restarts=1)])),
            "PodsNotReady",
            "does not run after 1 restart: CrashLoopBackOff",
        ),
        (
            observed_pool([], starting("a", containers=[waiting("CrashLoopBackOff", restarts=4)])),
            "PodsNotReady",
            "does not run after 4 restarts: CrashLoopBackOff",
        ),
        (
            observed_pool([replica_set(failure='pods "x" is forbidden: exceeded quota: small')]),
            "QuotaExceeded",
            "exceeded quota: small",
        ),
        (
            observed_pool([replica_set(failure="violates PodSecurity")]),
            "PodsNotReady",
            "cannot create pods: violates PodSecurity",
        ),
        (
            observed_pool([], starting("a", unschedulable="0/3 nodes are available")),
            "Unschedulable",
            "no node for pod a: 0/3 nodes",
        ),
        (observed_pool([], starting("a", containers=[waiting("ContainerCreating")])), None, ""),
        (
            observed_pool([], pod("a", is_terminating=True, containers=[waiting("ErrImagePull")])),
            None,
            "",
        ),
    ],
    ids=[
        *("ready", "starting", "image error", "image pull backoff", "config error"),
        *("crash loop", "long crash loop", "quota", "pod security", "unschedulable"),
        *("creating", "terminating"),
    ],
)
def test_reason_from_pods(observed: ObservedPool, reason: str | None, message: str) -> None:
    problem = status.reason_from_pods(observed)
    assert (problem and problem.reason) == reason
    assert message in (problem.message if problem else "")


def test_most_severe_problem_is_reported_when_pods_have_several() -> None:
    crashing = starting("a", containers=[waiting("CrashLoopBackOff")])
    without_image = starting("b", containers=[waiting("ErrImagePull")])
    unschedulable = starting("c", unschedulable="no node")
    problem = status.reason_from_pods(observed_pool([], crashing, without_image, unschedulable))
    assert problem is not None
    assert problem.reason == "ImagePullFailed"


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
def test_reason_for_error(error: errors.WorkronError, reason: str | None) -> None:
    problem = status.reason_for_error(error, "lab", "workron")
    assert (problem and problem.reason) == reason


def test_message_has_the_command_when_a_namespace_is_not_enabled() -> None:
    problem = status.reason_for_error(api_errors.ForbiddenError("403"), "lab", "workron")
    assert problem is not None
    assert problem.message.endswith(_COMMAND)


def _conditions(
    problem: StatusReason | None, ready: int, wanted: int
) -> dict[str, tuple[bool, str]]:
    found = status.pool_conditions(problem, ready, wanted)
    return {one.type: (one.holds, one.reason) for one in found}


@pytest.mark.parametrize(
    ("reason", "ready", "wanted", "expected"),
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
def test_pool_conditions(
    reason: str | None, ready: int, wanted: int, expected: dict[str, tuple[bool, str]]
) -> None:
    problem = None if reason is None else StatusReason(reason, "because")
    assert _conditions(problem, ready, wanted) == expected


def test_jobs_report_the_pools_problem_when_a_user_can_solve_it() -> None:
    assert status.reason_for_jobs(None, "gpu") is None
    assert status.reason_for_jobs(StatusReason("DatabaseUnavailable", "no answer"), "gpu") is None
    not_enabled = StatusReason("NamespaceNotEnabled", "kubectl …")
    assert status.reason_for_jobs(not_enabled, "gpu") == not_enabled
    bad = StatusReason("ImagePullFailed", "no tag")
    assert status.reason_for_jobs(bad, "gpu") == StatusReason(
        "ImagePullFailed", "WorkerPool gpu: no tag"
    )
