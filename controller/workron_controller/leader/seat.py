"""The Lease object that operators sit on in turn: what it says, and each way to write in it.

Called by `election`, which decides when. Each write is guarded by the version that was read, so of
two who write at once one is told so by ConflictError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron_controller.api import errors
from workron_controller.api.place import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from workron_controller.api.server import Server

LEASES: Final = Resource("coordination.k8s.io", "v1", "leases")


@dataclass(frozen=True, slots=True)
class Record:
    """What the object says."""

    version: str
    spec: Mapping[str, Any]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Record:
        """Read it from an answer."""
        return cls(body["metadata"]["resourceVersion"], body.get("spec") or {})

    @property
    def holder(self) -> str:
        """Who sits there; nobody, if empty."""
        return self.spec.get("holderIdentity") or ""

    @property
    def lasts(self) -> float:
        """Seconds: the holder's own promise, as it may be of another version than we are."""
        return float(self.spec.get("leaseDurationSeconds") or 0)


class Seat:
    """The object of one name, as one candidate uses it."""

    def __init__(self, server: Server, namespace: str, name: str, identity: str) -> None:
        self._server = server
        self._about = {"namespace": namespace, "name": name}
        self._collection = LEASES.at(namespace)
        self.place: Final = LEASES.at(namespace, name)
        self.identity: Final = identity

    async def read(self) -> Record | None:
        """Tell what it says, or that it was never made."""
        try:
            return Record.of(await self._server.get(self.place))
        except errors.AbsentError:
            return None

    async def take(self, before: Record | None, lasts: int, now: datetime) -> Record:
        """Sit down where nobody sits any more."""
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": lasts,
            "acquireTime": _stamp(now),
            "renewTime": _stamp(now),
            "leaseTransitions": before.spec.get("leaseTransitions", 0) + 1 if before else 0,
        }
        return await self._change(before, spec) if before else await self._make(spec)

    async def renew(self, before: Record, now: datetime) -> Record:
        """Stay."""
        return await self._change(before, {"renewTime": _stamp(now)})

    async def leave(self, before: Record, now: datetime) -> None:
        """Stand up, so that whoever looks next may sit down at once."""
        await self._change(before, {"holderIdentity": "", "renewTime": _stamp(now)})

    async def _make(self, spec: dict[str, Any]) -> Record:
        kind = {"apiVersion": f"{LEASES.group}/{LEASES.version}", "kind": "Lease"}
        body = {**kind, "metadata": self._about, "spec": spec}
        return Record.of(await self._server.create(self._collection, body))

    async def _change(self, before: Record, spec: dict[str, Any]) -> Record:
        body = {"metadata": {"resourceVersion": before.version}, "spec": spec}
        return Record.of(await self._server.patch(self.place, body))


def _stamp(moment: datetime) -> str:
    """Word a time as the API takes it: with microseconds, even where there are none."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
