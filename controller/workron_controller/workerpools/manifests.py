"""The objects of a WorkerPool: a ReplicaSet for each revision, and a Secret. Pure.

A pod has three containers. `pack` copies the runner's code to a volume, `runner` runs the commands
in the image of the pool, and `agent` talks to the store in our image. Runner and agent share a
socket. Only the agent gets the Secret, and only the runner what the pool's spec asks for.

The revision of a pod template is a digest of its JSON, which no Python version changes.
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


MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGED_BY_VALUE: Final = "workron-controller"
POOL_LABEL: Final = "workron.dev/pool"
REVISION_LABEL: Final = "workron.dev/revision"
STORE_KEY: Final = "store"
TOKEN_KEY: Final = "token"  # noqa: S105 - the name of a key
AGENT_CONTAINER: Final = "agent"
_STORE_ANNOTATION: Final = "workron.dev/store"
_CODE_VOLUME: Final = "workron-code"
_SOCKET_VOLUME: Final = "workron-socket"
_WORK_VOLUME: Final = "workron-tmp"
_ACCOUNT_VOLUME: Final = "workron-account"
_CODE_PATH: Final = "/workron/code"
_SOCKET_PATH: Final = "/workron/socket"
_ACCOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_RUNNER_FILE: Final = f"{_CODE_PATH}/runner.pyz"
_RUNNER_SOCKET: Final = f"{_SOCKET_PATH}/runner"
_RUNNER_FLAGS: Final = ("--hand-down", "--try-isolate")
"""`--try-isolate`: commands run even where the kernel of a node cannot isolate them."""
_HEALTH_PORT: Final = 8080
_USER: Final = 65532
"""The user of our image; the image of a pool may have none, or root."""
_RELEASE_SECONDS: Final = 30
"""How long an agent has after `drainTimeout` to end its commands and release their claims."""
_REVISION_DIGITS: Final = 10
_LOCATION_PARAMETERS: Final = frozenset(
    {"host", "port", "dbname", "database", "sslmode", "target_session_attrs"}
)
"""The parameters of a URL that say where its database is and how it is reached."""
_PLACEMENT_FIELDS: Final = (
    "affinity",
    "tolerations",
    "priorityClassName",
    "serviceAccountName",
    "imagePullSecrets",
)
_SECURITY: Final[dict[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_AGENT_RESOURCES: Final[dict[str, Any]] = {
    "requests": {"cpu": "50m", "memory": "96Mi"},
    "limits": {"memory": "384Mi"},
}
"""Without a CPU limit: a throttled agent can lose its lease, and its jobs with it."""

PoolName = tuple[str, str]
"""The namespace and the name of a pool; unlike a uid, both may be used again."""


def name_of(raw: Mapping[str, Any]) -> PoolName:
    """Return the name of a WorkerPool."""
    return raw["metadata"]["namespace"], raw["metadata"]["name"]


@dataclass(frozen=True, slots=True)
class PoolNames:
    """The identity of a pool, and the names of its objects."""

    namespace: str
    name: str
    uid: str

    @property
    def secret(self) -> str:
        """The name of the Secret of its workers."""
        return f"workron-pool-{self.name}"

    @property
    def selector(self) -> str:
        """The label selector of its ReplicaSets and pods."""
        return f"{MANAGED_BY}={MANAGED_BY_VALUE},{POOL_LABEL}={self.name}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all its objects."""
        return {
            "app.kubernetes.io/name": "workron-worker",
            MANAGED_BY: MANAGED_BY_VALUE,
            POOL_LABEL: self.name,
        }


def pod_template(pool: PoolNames, spec: WorkerPoolSpec, image: str, store: str) -> dict[str, Any]:
    """Return the template; `image` is ours, and `store` the URL of the database."""
    own = spec.as_manifest()
    grace_seconds = math.ceil(spec.drain_timeout.total_seconds()) + _RELEASE_SECONDS
    return {
        "metadata": {
            "labels": {**spec.labels, **pool.labels},
            # An agent reads its Secret only at its start, so another database is a new revision.
            "annotations": {_STORE_ANNOTATION: _store_digest(store)},
        },
        "spec": {
            "initContainers": [_packer(image), _runner(spec, spec.image or image)],
            "containers": [_agent(spec, image, pool.secret)],
            **{name: own[name] for name in _PLACEMENT_FIELDS if name in own},
            "nodeSelector": {"kubernetes.io/os": "linux", **spec.node_selector},
            "volumes": _volumes(spec),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            # With a shared namespace, commands could read the environment of the agent.
            "shareProcessNamespace": False,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": grace_seconds,
        },
    }


def _packer(image: str) -> dict[str, Any]:
    return {
        "name": "pack",
        "image": image,
        "command": ["python3", "-m", "workron_runner.pack", _RUNNER_FILE],
        "volumeMounts": [{"name": _CODE_VOLUME, "mountPath": _CODE_PATH}],
        "resources": _AGENT_RESOURCES,
        "securityContext": _SECURITY,
    }


def _runner(spec: WorkerPoolSpec, image: str) -> dict[str, Any]:
    """Return a sidecar, which starts before the agent and ends after it."""
    own = spec.as_manifest()
    mounts = [
        {"name": _CODE_VOLUME, "mountPath": _CODE_PATH, "readOnly": True},
        {"name": _SOCKET_VOLUME, "mountPath": _SOCKET_PATH},
        {"name": _WORK_VOLUME, "mountPath": "/tmp"},  # noqa: S108 - of the container
    ]
    if spec.automount_service_account_token:
        mounts.append({"name": _ACCOUNT_VOLUME, "mountPath": _ACCOUNT_PATH, "readOnly": True})
    return {
        "name": "runner",
        "image": image,
        "restartPolicy": "Always",
        # Isolated mode (-I): the runner imports nothing from the folders of the pool's image.
        "command": ["python3", "-IS", _RUNNER_FILE, "--socket", _RUNNER_SOCKET, *_RUNNER_FLAGS],
        "env": own.get("env", []),
        "envFrom": own.get("envFrom", []),
        "volumeMounts": [*mounts, *own.get("volumeMounts", [])],
        "resources": own.get("resources", {}),
        "securityContext": _SECURITY,
    }


def _agent(spec: WorkerPoolSpec, image: str, secret: str) -> dict[str, Any]:
    from_secret = {
        key: {"secretKeyRef": {"name": secret, "key": key}} for key in (STORE_KEY, TOKEN_KEY)
    }
    return {
        "name": AGENT_CONTAINER,
        "image": image,
        "args": [
            *("worker", "--slots", str(spec.slots)),
            *("--heartbeat", formats.format_duration(spec.heartbeat)),
            *("--grace", formats.format_duration(spec.drain_timeout)),
            *("--health", f"0.0.0.0:{_HEALTH_PORT}", "--log", "json"),
        ],
        "env": [
            {"name": "WORKRON_STORE", "valueFrom": from_secret[STORE_KEY]},
            {"name": "WORKRON_TOKEN", "valueFrom": from_secret[TOKEN_KEY]},
            {"name": "WORKRON_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            {"name": "WORKRON_RUNNER", "value": _RUNNER_SOCKET},
        ],
        "ports": [{"name": "health", "containerPort": _HEALTH_PORT}],
        # High thresholds: a node that is busy with jobs must not get its agent killed.
        "livenessProbe": _probe("/healthz", failures=6),
        "readinessProbe": _probe("/readyz", failures=3),
        "volumeMounts": [{"name": _SOCKET_VOLUME, "mountPath": _SOCKET_PATH}],
        "resources": _AGENT_RESOURCES,
        "securityContext": _SECURITY,
    }


def _probe(path: str, *, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": _HEALTH_PORT},
        "periodSeconds": 5,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _volumes(spec: WorkerPoolSpec) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": name, "emptyDir": {}} for name in (_CODE_VOLUME, _SOCKET_VOLUME, _WORK_VOLUME)
    ]
    if spec.automount_service_account_token:
        # Kubernetes would mount these into every container; here only the runner has them.
        namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
        authority = {"key": "ca.crt", "path": "ca.crt"}
        sources = [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [authority]}},
            {"downwardAPI": {"items": [namespace]}},
        ]
        volumes.append({"name": _ACCOUNT_VOLUME, "projected": {"sources": sources}})
    return [*volumes, *spec.as_manifest().get("volumes", [])]


def _store_digest(store: str) -> str:
    """Return a digest of the database's location, without user and password."""
    parts = parse.urlsplit(store)
    host = parts.netloc.rpartition("@")[2]
    parameters = [one for one in parse.parse_qsl(parts.query) if one[0] in _LOCATION_PARAMETERS]
    return _digest(json.dumps([host, parts.path, parameters]))


def revision(template: Mapping[str, Any]) -> str:
    """Return the digest that identifies a template."""
    return _digest(json.dumps(template, sort_keys=True, separators=(",", ":"), ensure_ascii=True))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_REVISION_DIGITS]


def replica_set(pool: PoolNames, template: Mapping[str, Any], replicas: int) -> dict[str, Any]:
    """Return the ReplicaSet of a template."""
    digest = revision(template)
    labels = {**pool.labels, REVISION_LABEL: digest}
    metadata = {**template["metadata"], "labels": {**template["metadata"]["labels"], **labels}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": _metadata(pool, f"workron-{pool.name}-{digest}", labels),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {**template, "metadata": metadata},
        },
    }


def secret(pool: PoolNames, url: str, token: str) -> dict[str, Any]:
    """Return the Secret by which the agents open the store."""
    values = {STORE_KEY: url, TOKEN_KEY: token}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(pool, pool.secret, pool.labels),
        "type": "Opaque",
        "data": {key: base64.b64encode(one.encode()).decode() for key, one in values.items()},
    }


def _metadata(pool: PoolNames, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    owner = {
        "apiVersion": "workron.dev/v1alpha1",
        "kind": "WorkerPool",
        "name": pool.name,
        "uid": pool.uid,
        "controller": True,
        # True would need a permission that nothing else here needs.
        "blockOwnerDeletion": False,
    }
    return {
        "name": name,
        "namespace": pool.namespace,
        "labels": dict(labels),
        "ownerReferences": [owner],
    }
