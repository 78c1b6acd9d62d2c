"""Gives the database of a trial its password, once, and the URL with it to who needs that.

Called by an init container of the controller, with the namespace and the name of the Secret. No
password is in the chart, in its values, or in what Helm keeps of a release: whoever renders it anew
cannot change the one that the volume was made with.
"""

from __future__ import annotations

import base64
import secrets
import sys
from collections.abc import Callable
from typing import Any

import kube

ROLE = "workron"
"""Role and database of the trial."""


def settle(
    cluster: kube.Cluster,
    namespace: str,
    name: str,
    make: Callable[[], str] = secrets.token_hex,
) -> bool:
    """Put a password into the Secret; False: it has one."""
    path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
    secret = cluster.get(path)
    if "url" in (secret.get("data") or {}):
        return False
    try:
        cluster.merge(path, _filled(secret, make(), f"{name}.{namespace}.svc"))
    except kube.ConflictError:
        # Another controller was faster, or something else of it was changed.
        return settle(cluster, namespace, name, make)
    return True


def _filled(secret: dict[str, Any], password: str, host: str) -> dict[str, Any]:
    url = f"postgresql://{ROLE}:{password}@{host}:5432/{ROLE}"
    return {
        # Of two that do this at once, one is told so.
        "metadata": {"resourceVersion": secret["metadata"]["resourceVersion"]},
        "data": {"password": _encoded(password), "url": _encoded(url)},
        # Who replaces it by an empty one, as `helm upgrade --force-replace` does, is refused.
        "immutable": True,
    }


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


if __name__ == "__main__":
    try:
        is_new = settle(kube.in_pod(), sys.argv[1], sys.argv[2])
    except (kube.RefusedError, OSError) as error:
        sys.exit(f"the database has no password yet: {error}")
    sys.stdout.write("the password was made\n" if is_new else "the password stays\n")
