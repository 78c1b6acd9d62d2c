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

from workron_controller.pools import containers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron.core.model.pool import WorkerPoolSpec

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "workron-controller"
POOL: Final = "workron.dev/pool"
STORE: Final = "workron.dev/store"
REVISION: Final = "workron.dev/revision"
_NAME: Final = "app.kubernetes.io/name"

_USER: Final = 65532
"""That of our image; an image of the pool's own may have named none, or root."""
_ENDING_SECONDS: Final = 30
"""So long an agent has, when its grace is over, to end what runs and hand it back."""
_REVISION_DIGITS: Final = 10
_PLACE: Final = frozenset({"host", "port", "dbname", "database", "sslmode", "target_session_attrs"})
"""What a URL may say of where its database is, and how it is reached, beyond its host and path."""


@dataclass(frozen=True, slots=True)
class Pool:
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
        return f"{MANAGED_BY}={MANAGER},{POOL}={self.name}"

    def replica_set(self, revision: str) -> str:
        """Name the ReplicaSet of a revision."""
        return f"workron-{self.name}-{revision}"

    @property
    def labels(self) -> dict[str, str]:
        """Give those of all that belongs to it."""
        return {_NAME: "workron-worker", MANAGED_BY: MANAGER, POOL: self.name}


def template(pool: Pool, spec: WorkerPoolSpec, image: str, store: str) -> dict[str, Any]:
    """Give the pod's template; `image` is that of the agent, `store` the URL of the database."""
    return {
        "metadata": {
            "labels": {**spec.labels, **pool.labels},
            # An agent reads its Secret when it begins: one of another database is to be another.
            "annotations": {STORE: _whereabouts(store)},
        },
        "spec": {
            **containers.all_of(spec, image, pool.secret),
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


def replica_set(pool: Pool, template: Mapping[str, Any], replicas: int) -> dict[str, Any]:
    """Give the ReplicaSet of a template."""
    which = revision(template)
    labels = {**pool.labels, REVISION: which}
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


def secret(pool: Pool, url: str, token: str) -> dict[str, Any]:
    """Give the Secret by which its agents open the store."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(pool, pool.secret, pool.labels),
        "type": "Opaque",
        "data": {containers.STORE_KEY: _encoded(url), containers.TOKEN_KEY: _encoded(token)},
    }


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _metadata(pool: Pool, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
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
        {"name": name, "emptyDir": {}}
        for name in (containers.CODE, containers.DOOR, containers.ROOM)
    ]
    if spec.automount_service_account_token:
        own.append({"name": containers.ACCOUNT, "projected": {"sources": _account()}})
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
