"""The containers of a worker's pod: the agent, the runner, and what brings the runner's program.

Pure; called by `shape`. Only the agent has the pool's secret; only the runner has what the pool
brings along, and the commands. They share a socket and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workron.core import duration

if TYPE_CHECKING:
    from workron.core.model.pool import WorkerPoolSpec

CODE: Final = "workron-code"
DOOR: Final = "workron-door"
ROOM: Final = "workron-room"
ACCOUNT: Final = "workron-account"
STORE_KEY: Final = "store"
TOKEN_KEY: Final = "token"  # noqa: S105 - the name of a key
PORT: Final = 8080

AGENT: Final = "agent"
_CODE_AT: Final = "/workron/code"
_DOOR_AT: Final = "/workron/door"
_PROGRAM: Final = f"{_CODE_AT}/runner.pyz"
_SOCKET: Final = f"{_DOOR_AT}/runner"
_KEPT: Final = ("--hand-down", "--try-isolate")
"""Nodes differ in their kernels, and where one cannot keep commands apart they run all the same."""
_ACCOUNT_AT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"

_SECURITY: Final[dict[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_SMALL: Final[dict[str, Any]] = {
    "requests": {"cpu": "50m", "memory": "96Mi"},
    "limits": {"memory": "384Mi"},
}
"""No limit of CPU: an agent that is slowed down may lose its lease, and all that runs with it."""


def all_of(spec: WorkerPoolSpec, image: str, secret: str) -> dict[str, list[dict[str, Any]]]:
    """Give them as a pod has them; `image` is ours, and the commands' where the pool names none."""
    return {
        "initContainers": [_packer(image), _runner(spec, spec.image or image)],
        "containers": [_agent(spec, image, secret)],
    }


def _packer(image: str) -> dict[str, Any]:
    return {
        "name": "pack",
        "image": image,
        "command": ["python3", "-m", "workron_runner.pack", _PROGRAM],
        "volumeMounts": [{"name": CODE, "mountPath": _CODE_AT}],
        "resources": _SMALL,
        "securityContext": _SECURITY,
    }


def _runner(spec: WorkerPoolSpec, image: str) -> dict[str, Any]:
    """Make it a sidecar, which begins before the agent and ends after it."""
    own = spec.as_manifest()
    return {
        "name": "runner",
        "image": image,
        "restartPolicy": "Always",
        # Neither what the commands' image has in its folders nor what its user left is to be
        # imported by what starts them.
        "command": ["python3", "-IS", _PROGRAM, "--socket", _SOCKET, *_KEPT],
        "env": own.get("env", []),
        "envFrom": own.get("envFrom", []),
        "volumeMounts": [
            {"name": CODE, "mountPath": _CODE_AT, "readOnly": True},
            {"name": DOOR, "mountPath": _DOOR_AT},
            {"name": ROOM, "mountPath": "/tmp"},  # noqa: S108 - of the container
            *_account_mount(spec),
            *own.get("volumeMounts", []),
        ],
        "resources": own.get("resources", {}),
        "securityContext": _SECURITY,
    }


def _account_mount(spec: WorkerPoolSpec) -> list[dict[str, Any]]:
    if not spec.automount_service_account_token:
        return []
    return [{"name": ACCOUNT, "mountPath": _ACCOUNT_AT, "readOnly": True}]


def _agent(spec: WorkerPoolSpec, image: str, secret: str) -> dict[str, Any]:
    return {
        "name": AGENT,
        "image": image,
        "args": [
            *("worker", "--slots", str(spec.slots)),
            *("--heartbeat", duration.render(spec.heartbeat)),
            *("--grace", duration.render(spec.drain_timeout)),
            *("--health", f"0.0.0.0:{PORT}", "--log", "json"),
        ],
        "env": [
            {"name": "WORKRON_STORE", "valueFrom": _from_secret(secret, STORE_KEY)},
            {"name": "WORKRON_TOKEN", "valueFrom": _from_secret(secret, TOKEN_KEY)},
            {"name": "WORKRON_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            {"name": "WORKRON_RUNNER", "value": _SOCKET},
        ],
        "ports": [{"name": "health", "containerPort": PORT}],
        # Patient: a machine that is busy with jobs must not have its agent taken for dead.
        "livenessProbe": _probe("/healthz", failures=6),
        "readinessProbe": _probe("/readyz", failures=3),
        "volumeMounts": [{"name": DOOR, "mountPath": _DOOR_AT}],
        "resources": _SMALL,
        "securityContext": _SECURITY,
    }


def _from_secret(name: str, key: str) -> dict[str, Any]:
    return {"secretKeyRef": {"name": name, "key": key}}


def _probe(path: str, *, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": PORT},
        "periodSeconds": 5,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
