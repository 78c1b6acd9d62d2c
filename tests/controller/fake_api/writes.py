"""The effect of a write on an object: names, uids, versions, generations and the status.

A real server (Kubernetes 1.34) does all of this. One rule is surprising: a uid in the body is a
precondition of a write to the object, and is ignored in a write to its status.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.controller.fake_api import status_errors
from tests.controller.fake_api.kinds import Json, Kind
from tests.controller.fake_api.storage import Key, Storage

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_IMMUTABLE_METADATA = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
)


def create(storage: Storage, kind: Kind, namespace: str, body: Json) -> Json:
    """Create an object."""
    if (body.get("apiVersion"), body.get("kind")) != (kind.version, kind.name):
        raise status_errors.bad_request(f"the object is not a {kind.name} of {kind.version}")
    metadata = dict(body.get("metadata") or {})
    if metadata.get("namespace", namespace) != namespace:
        raise status_errors.bad_request("the namespace of the object is not that of the request")
    name = metadata.get("name") or f"{metadata.get('generateName', '')}{uuid.uuid4().hex[:5]}"
    if not _NAME.fullmatch(name):
        cause = "not a lowercase RFC 1123 subdomain"
        raise status_errors.invalid(kind, name, "metadata.name", cause)
    if storage.find((kind, namespace, name)) is not None:
        raise status_errors.already_exists(kind, name)
    after = {**body, "metadata": metadata | _new_metadata(kind, namespace, name)}
    if kind.has_status:
        after.pop("status", None)
    return storage.put((kind, namespace, name), after)


def _new_metadata(kind: Kind, namespace: str, name: str) -> Json:
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": str(uuid.uuid4()),
        "creationTimestamp": _now(),
        **({"generation": 1} if kind.has_status else {}),
    }


def change(storage: Storage, key: Key, subresource: str, patch: Callable[[Json], Json]) -> Json:
    """Change an object, or only its status if that is the subresource."""
    kind, _, name = key
    before = storage.find(key)
    if before is None:
        raise status_errors.not_found(kind, name)
    wanted = patch(before)
    metadata, old = wanted.get("metadata") or {}, before["metadata"]
    if metadata.get("resourceVersion", old["resourceVersion"]) != old["resourceVersion"]:
        raise status_errors.modified(kind, name)
    after = _with_status(before, wanted) if subresource else _without_status(kind, before, wanted)
    return _store(storage, key, before, after)


def _with_status(before: Json, wanted: Json) -> Json:
    """Change the status only."""
    rest = {field: value for field, value in before.items() if field != "status"}
    return rest | ({"status": wanted["status"]} if "status" in wanted else {})


def _without_status(kind: Kind, before: Json, wanted: Json) -> Json:
    """Change everything except the status."""
    old, metadata = before["metadata"], dict(wanted.get("metadata") or {})
    if metadata.get("name") != old["name"]:
        raise status_errors.bad_request("the name of the object is not that of the request")
    if metadata.get("uid") != old["uid"]:
        raise status_errors.invalid(kind, old["name"], "metadata.uid", "field is immutable")
    metadata |= {field: old[field] for field in _IMMUTABLE_METADATA if field in old}
    after = {**wanted, "metadata": {field: value for field, value in metadata.items() if value}}
    if kind.has_status:
        after = _with_status(after, before)
        if _content(after) != _content(before):
            after["metadata"]["generation"] = old["generation"] + 1
    return after


def _content(body: Json) -> Json:
    return {field: value for field, value in body.items() if field not in {"metadata", "status"}}


def _store(storage: Storage, key: Key, before: Json, after: Json) -> Json:
    """Store a change; a deleted object is removed with its last finalizer."""
    if after == before:
        return before
    if "deletionTimestamp" in after["metadata"] and not after["metadata"].get("finalizers"):
        storage.remove(key)
        return after
    return storage.put(key, after)


def delete(storage: Storage, key: Key, preconditions: dict[str, Any]) -> Json:
    """Delete an object, or set its deletion timestamp if it has a finalizer."""
    kind, _, name = key
    before = storage.find(key)
    if before is None:
        raise status_errors.not_found(kind, name)
    metadata = before["metadata"]
    for field, value in preconditions.items():
        if metadata[field] != value:
            cause = f"the {field} in the precondition ({value}) is not that in record"
            raise status_errors.conflict(kind, name, cause)
    if metadata.get("finalizers"):
        metadata.setdefault("deletionTimestamp", _now())
        if "generation" in metadata:
            metadata["generation"] += 1
        return storage.put(key, before)
    storage.remove(key)
    details = {"name": name, "group": kind.resource.group, "uid": metadata["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": details}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
