"""Generates the password of the trial database, and stores it with the URL in a Secret.

It runs in an init container of the controller, with the namespace and the name of the Secret as
arguments. Neither the chart nor its values contain a password, and Helm keeps none with a release,
so no rendering can replace the password that the volume was initialized with.
"""

from __future__ import annotations

import base64
import secrets
import sys
from collections.abc import Callable
from typing import Any

import kube

ROLE = "workron"
"""The name of both the role and the database."""


def ensure_password(
    cluster: kube.Cluster,
    namespace: str,
    name: str,
    generate: Callable[[], str] = secrets.token_hex,
) -> bool:
    """Store a new password in the Secret; return False if it already has one."""
    path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
    secret = cluster.get(path)
    if "url" in (secret.get("data") or {}):
        return False
    try:
        cluster.merge(path, _patch(secret, generate(), f"{name}.{namespace}.svc"))
    except kube.ConflictError:
        # Another controller was faster, or something else in the Secret changed.
        return ensure_password(cluster, namespace, name, generate)
    return True


def _patch(secret: dict[str, Any], password: str, host: str) -> dict[str, Any]:
    url = f"postgresql://{ROLE}:{password}@{host}:5432/{ROLE}"
    return {
        # With the version, the API server accepts only one of two concurrent patches.
        "metadata": {"resourceVersion": secret["metadata"]["resourceVersion"]},
        "data": {"password": _encode(password), "url": _encode(url)},
        # `helm upgrade --force-replace` would otherwise replace the Secret with an empty one.
        "immutable": True,
    }


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


if __name__ == "__main__":
    try:
        is_new = ensure_password(kube.in_pod(), sys.argv[1], sys.argv[2])
    except (kube.RequestError, OSError) as error:
        sys.exit(f"cannot store a password for the database: {error}")
    sys.stdout.write("stored a new password\n" if is_new else "the Secret already has a password\n")
