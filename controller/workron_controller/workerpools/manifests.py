"""What a WorkerPool becomes in its namespace: a ReplicaSet for each revision, and a Secret. Pure.

A revision is known by a digest of the pod's template, which is the same for the same template from
whatever Python it is made.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib import parse

from workron.core import formats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron.core.model.workerpool import WorkerPoolSpec


CODE_VOLUME: Final = "workron-code"
SOCKET_VOLUME: Final = "workron-door"
WORK_VOLUME: Final = "workron-room"
ACCOUNT_VOLUME: Final = "workron-account"
STORE_KEY: Final = "store"
TOKEN_KEY: Final = "token"  # noqa: S105 - the name of a key
HEALTH_PORT: Final = 8080

AGENT_CONTAINER: Final = "agent"
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


def containers(spec: WorkerPoolSpec, image: str, secret: str) -> dict[str, list[dict[str, Any]]]:
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
        "volumeMounts": [{"name": CODE_VOLUME, "mountPath": _CODE_AT}],
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
            {"name": CODE_VOLUME, "mountPath": _CODE_AT, "readOnly": True},
            {"name": SOCKET_VOLUME, "mountPath": _DOOR_AT},
            {"name": WORK_VOLUME, "mountPath": "/tmp"},  # noqa: S108 - of the container
            *_account_mount(spec),
            *own.get("volumeMounts", []),
        ],
        "resources": own.get("resources", {}),
        "securityContext": _SECURITY,
    }


def _account_mount(spec: WorkerPoolSpec) -> list[dict[str, Any]]:
    if not spec.automount_service_account_token:
        return []
    return [{"name": ACCOUNT_VOLUME, "mountPath": _ACCOUNT_AT, "readOnly": True}]


def _agent(spec: WorkerPoolSpec, image: str, secret: str) -> dict[str, Any]:
    return {
        "name": AGENT_CONTAINER,
        "image": image,
        "args": [
            *("worker", "--slots", str(spec.slots)),
            *("--heartbeat", formats.format_duration(spec.heartbeat)),
            *("--grace", formats.format_duration(spec.drain_timeout)),
            *("--health", f"0.0.0.0:{HEALTH_PORT}", "--log", "json"),
        ],
        "env": [
            {"name": "WORKRON_STORE", "valueFrom": _from_secret(secret, STORE_KEY)},
            {"name": "WORKRON_TOKEN", "valueFrom": _from_secret(secret, TOKEN_KEY)},
            {"name": "WORKRON_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            {"name": "WORKRON_RUNNER", "value": _SOCKET},
        ],
        "ports": [{"name": "health", "containerPort": HEALTH_PORT}],
        # Patient: a machine that is busy with jobs must not have its agent taken for dead.
        "livenessProbe": _probe("/healthz", failures=6),
        "readinessProbe": _probe("/readyz", failures=3),
        "volumeMounts": [{"name": SOCKET_VOLUME, "mountPath": _DOOR_AT}],
        "resources": _SMALL,
        "securityContext": _SECURITY,
    }


def _from_secret(name: str, key: str) -> dict[str, Any]:
    return {"secretKeyRef": {"name": name, "key": key}}


def _probe(path: str, *, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": HEALTH_PORT},
        "periodSeconds": 5,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGED_BY_VALUE: Final = "workron-controller"
POOL_LABEL: Final = "workron.dev/pool"
STORE_ANNOTATION: Final = "workron.dev/store"
REVISION_LABEL: Final = "workron.dev/revision"
_NAME: Final = "app.kubernetes.io/name"

_USER: Final = 65532
"""That of our image; an image of the pool's own may have named none, or root."""
_ENDING_SECONDS: Final = 30
"""So long an agent has, when its grace is over, to end what runs and hand it back."""
_REVISION_DIGITS: Final = 10
_PLACE: Final = frozenset({"host", "port", "dbname", "database", "sslmode", "target_session_attrs"})
"""What a URL may say of where its database is, and how it is reached, beyond its host and path."""


@dataclass(frozen=True, slots=True)
class PoolNames:
    """Who a pool is."""

    namespace: str
    name: str
    uid: str

    @property
    def secret(self) -> str:
        """Name the Secret of its workers."""
        return f"workron-pool-{self.name}"

    @property
    def selector(self) -> str:
        """Select its pods."""
        return f"{MANAGED_BY}={MANAGED_BY_VALUE},{POOL_LABEL}={self.name}"

    def replica_set(self, revision: str) -> str:
        """Name the ReplicaSet of a revision."""
        return f"workron-{self.name}-{revision}"

    @property
    def labels(self) -> dict[str, str]:
        """Give those of all that belongs to it."""
        return {_NAME: "workron-worker", MANAGED_BY: MANAGED_BY_VALUE, POOL_LABEL: self.name}


def pod_template(pool: PoolNames, spec: WorkerPoolSpec, image: str, store: str) -> dict[str, Any]:
    """Give the pod's template; `image` is that of the agent, `store` the URL of the database."""
    return {
        "metadata": {
            "labels": {**spec.labels, **pool.labels},
            # An agent reads its Secret when it begins: one of another database is to be another.
            "annotations": {STORE_ANNOTATION: _whereabouts(store)},
        },
        "spec": {
            **containers(spec, image, pool.secret),
            **_placement(spec),
            "volumes": _volumes(spec),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            # Who shares processes could read the agent's environment.
            "shareProcessNamespace": False,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": _grace_seconds(spec),
        },
    }


def revision(template: Mapping[str, Any]) -> str:
    """Tell one template from another."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return _digest(text)


def _whereabouts(store: str) -> str:
    """Tell one database from another, and nothing of who enters it."""
    parts = parse.urlsplit(store)
    host = parts.netloc.rpartition("@")[2]
    said = [one for one in parse.parse_qsl(parts.query) if one[0] in _PLACE]
    return _digest(json.dumps([host, parts.path, said]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_REVISION_DIGITS]


def replica_set(pool: PoolNames, template: Mapping[str, Any], replicas: int) -> dict[str, Any]:
    """Give the ReplicaSet of a template."""
    which = revision(template)
    labels = {**pool.labels, REVISION_LABEL: which}
    metadata = {**template["metadata"], "labels": {**template["metadata"]["labels"], **labels}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": _metadata(pool, pool.replica_set(which), labels),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {**template, "metadata": metadata},
        },
    }


def secret(pool: PoolNames, url: str, token: str) -> dict[str, Any]:
    """Give the Secret by which its agents open the store."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(pool, pool.secret, pool.labels),
        "type": "Opaque",
        "data": {STORE_KEY: _encoded(url), TOKEN_KEY: _encoded(token)},
    }


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _metadata(pool: PoolNames, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    owner = {
        "apiVersion": "workron.dev/v1alpha1",
        "kind": "WorkerPool",
        "name": pool.name,
        "uid": pool.uid,
        "controller": True,
        # To hold up another's deletion takes a right that nothing else here needs.
        "blockOwnerDeletion": False,
    }
    return {
        "name": name,
        "namespace": pool.namespace,
        "labels": dict(labels),
        "ownerReferences": [owner],
    }


def _grace_seconds(spec: WorkerPoolSpec) -> int:
    return math.ceil(spec.drain_timeout.total_seconds()) + _ENDING_SECONDS


def _placement(spec: WorkerPoolSpec) -> dict[str, Any]:
    own = spec.as_manifest()
    names = ("affinity", "tolerations", "priorityClassName", "serviceAccountName")
    placed = {name: own[name] for name in (*names, "imagePullSecrets") if name in own}
    return placed | {"nodeSelector": {"kubernetes.io/os": "linux", **spec.node_selector}}


def _volumes(spec: WorkerPoolSpec) -> list[dict[str, Any]]:
    own: list[dict[str, Any]] = [
        {"name": name, "emptyDir": {}} for name in (CODE_VOLUME, SOCKET_VOLUME, WORK_VOLUME)
    ]
    if spec.automount_service_account_token:
        own.append({"name": ACCOUNT_VOLUME, "projected": {"sources": _account()}})
    return [*own, *spec.as_manifest().get("volumes", [])]


def _account() -> list[dict[str, Any]]:
    """Give what Kubernetes would put into every container, for one of them."""
    name = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    authority = {"key": "ca.crt", "path": "ca.crt"}
    return [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [authority]}},
        {"downwardAPI": {"items": [name]}},
    ]
