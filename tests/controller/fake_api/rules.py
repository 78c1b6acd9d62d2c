"""What a write does to an object: names, uids, versions, generations, the status of its own.

Each rule here was seen on a real server (Kubernetes 1.34). The one that surprises: a uid in the
body guards the object itself, and is not looked at where its status is patched.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.controller.fake_api import refused
from tests.controller.fake_api.kinds import Json, Kind
from tests.controller.fake_api.storage import Key, Storage

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp")
"""Of the metadata: no body changes these."""


def create(storage: Storage, kind: Kind, namespace: str, body: Json) -> Json:
    """Make an object."""
    if (body.get("apiVersion"), body.get("kind")) != (kind.version, kind.name):
        raise refused.bad(f"the object is not a {kind.name} of {kind.version}")
    about = dict(body.get("metadata") or {})
    if about.get("namespace", namespace) != namespace:
        raise refused.bad("the namespace of the object is not that of the request")
    name = about.get("name") or f"{about.get('generateName', '')}{uuid.uuid4().hex[:5]}"
    if not _NAME.fullmatch(name):
        raise refused.invalid(kind, name, "metadata.name", "not a lowercase RFC 1123 subdomain")
    if storage.find((kind, namespace, name)) is not None:
        raise refused.twin(kind, name)
    after = {**body, "metadata": about | _born(kind, namespace, name)}
    if kind.has_status:
        after.pop("status", None)
    return storage.put((kind, namespace, name), after)


def _born(kind: Kind, namespace: str, name: str) -> Json:
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": str(uuid.uuid4()),
        "creationTimestamp": _now(),
        **({"generation": 1} if kind.has_status else {}),
    }


def change(storage: Storage, key: Key, part: str, worded: Callable[[Json], Json]) -> Json:
    """Change an object, or (`part`) only its status, into what the request makes of it."""
    kind, _, name = key
    before = storage.find(key)
    if before is None:
        raise refused.absent(kind, name)
    wanted = worded(before)
    about, old = wanted.get("metadata") or {}, before["metadata"]
    if about.get("resourceVersion", old["resourceVersion"]) != old["resourceVersion"]:
        raise refused.changed(kind, name)
    after = _status_of(before, wanted) if part else _all_but_status_of(kind, before, wanted)
    return _store(storage, key, before, after)


def _status_of(before: Json, wanted: Json) -> Json:
    rest = {field: value for field, value in before.items() if field != "status"}
    return rest | ({"status": wanted["status"]} if "status" in wanted else {})


def _all_but_status_of(kind: Kind, before: Json, wanted: Json) -> Json:
    old, about = before["metadata"], dict(wanted.get("metadata") or {})
    if about.get("name") != old["name"]:
        raise refused.bad("the name of the object is not that of the request")
    if about.get("uid") != old["uid"]:
        raise refused.invalid(kind, old["name"], "metadata.uid", "field is immutable")
    about |= {field: old[field] for field in _FIXED if field in old}
    after = {**wanted, "metadata": {field: value for field, value in about.items() if value}}
    if kind.has_status:
        after = _status_of(after, before)
        if _content(after) != _content(before):
            after["metadata"]["generation"] = old["generation"] + 1
    return after


def _content(body: Json) -> Json:
    return {field: value for field, value in body.items() if field not in {"metadata", "status"}}


def _store(storage: Storage, key: Key, before: Json, after: Json) -> Json:
    """Nothing changed is no version; the last finalizer gone is the end."""
    if after == before:
        return before
    if "deletionTimestamp" in after["metadata"] and not after["metadata"].get("finalizers"):
        storage.remove(key)
        return after
    return storage.put(key, after)


def delete(storage: Storage, key: Key, guard: dict[str, Any]) -> Json:
    """Delete an object, or mark it where a finalizer holds it."""
    kind, _, name = key
    before = storage.find(key)
    if before is None:
        raise refused.absent(kind, name)
    about = before["metadata"]
    for field, value in guard.items():
        if about[field] != value:
            said = f"the {field} in the precondition ({value}) is not that in record"
            raise refused.conflict(kind, name, said)
    if about.get("finalizers"):
        about.setdefault("deletionTimestamp", _now())
        if "generation" in about:
            about["generation"] += 1
        return storage.put(key, before)
    storage.remove(key)
    details = {"name": name, "group": kind.resource.group, "uid": about["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": details}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
