"""Leader election by a Lease of the cluster: at most one replica leads at a time.

The algorithm is that of client-go. No clock of another machine is trusted:

- a candidate takes over when *it* has seen the record unchanged for the `leaseDurationSeconds` that
  the holder has written;
- a leader stops leading `renew_deadline` seconds after it *sent* the last renewal that was
  answered.

The second time is shorter than the first, so two replicas never lead at once as long as their
clocks run equally fast within the difference. After a crash the next replica leads within the lease
and two retry intervals; a replica that is stopped releases the Lease at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, Final

import structlog

from workron.core.clock import Clock, Rng, Sleep
from workron_controller.kube import errors
from workron_controller.kube.client import ApiClient
from workron_controller.kube.resources import ApiResource

_log = structlog.get_logger(__name__)
_RELEASE_TRIES: Final = 2
"""A renewal in flight may arrive between the read and the write of the first try."""


@dataclass(frozen=True, slots=True)
class ElectionTiming:
    """Times of the election in seconds."""

    lease_seconds: int = 12
    """No other replica leads for this long after a renewal."""
    renew_deadline: float = 8.0
    """A leader stops this long after it sent the last renewal that was answered."""
    renew_interval: float = 2.0
    retry_interval: float = 1.0
    """The longest time between two reads of a candidate, or two tries of a failing renewal."""
    request_timeout: float = 3.0


class LeaderElection:
    """One candidate, which takes part while `run` runs."""

    def __init__(
        self,
        lock: LeaseLock,
        clock: Clock,
        rng: Rng,
        timing: ElectionTiming | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._lock = lock
        self._clock = clock
        self._rng = rng
        self._timing = timing or ElectionTiming()
        self._sleep = sleep
        self._leads_until = -inf
        self._record: LeaseRecord | None = None
        self._unchanged_since = inf
        self._has_changed = asyncio.Event()
        self._was_leading = False
        self._last_error = ""

    @property
    def is_leading(self) -> bool:
        """Whether this replica leads now; check it right before an action of the leader."""
        return self._clock.monotonic() < self._leads_until

    async def wait(self, *, leading: bool) -> None:
        """Wait until this replica leads, or until it does not."""
        while self.is_leading is not leading:
            await self._has_changed.wait()

    async def run(self) -> None:
        """Take part until cancelled; then release the Lease, so that no other waits for its end."""
        try:
            while True:
                await self._try()
                self._publish()
                await self._sleep(self._pause())
                self._publish()
        finally:
            await self._step_down()

    async def _try(self) -> None:
        """Renew or acquire the Lease; without an answer nothing changes."""
        timeout = self._timing.request_timeout
        seconds = min(timeout, self._seconds_left) if self.is_leading else timeout
        try:
            async with asyncio.timeout(seconds):
                await self._renew_or_acquire()
        except (errors.ApiError, TimeoutError) as error:
            message = str(error) or f"no answer within {seconds:g} s"
            if message != self._last_error:
                lease = str(self._lock.path)
                _log.warning("lease not renewed or read", lease=lease, error=message)
            self._last_error = message
        else:
            self._last_error = ""

    @property
    def _seconds_left(self) -> float:
        return max(0.0, self._leads_until - self._clock.monotonic())

    async def _renew_or_acquire(self) -> None:
        if not self.is_leading or self._record is None:
            await self._read()
        record, now = self._record, _micro_time(self._clock.now())
        spec: dict[str, Any] = {"renewTime": now}
        if record is None or record.holder != self._lock.identity:
            unchanged = self._clock.monotonic() - self._unchanged_since
            if record is not None and record.holder and unchanged < record.lease_seconds:
                return
            spec |= {
                "holderIdentity": self._lock.identity,
                "leaseDurationSeconds": self._timing.lease_seconds,
                "acquireTime": now,
                "leaseTransitions": record.spec.get("leaseTransitions", 0) + 1 if record else 0,
            }
        sent_at = self._clock.monotonic()
        self._record = None
        # A conflict: another replica was faster.
        with contextlib.suppress(errors.ConflictError):
            self._record = await self._lock.write(record, spec)
            self._leads_until = sent_at + self._timing.renew_deadline

    async def _read(self) -> None:
        before, self._record = self._record, await self._lock.read()
        if before is None or self._record is None or self._record.spec != before.spec:
            # Read after the answer: the record was written earlier, so the wait is long enough.
            self._unchanged_since = self._clock.monotonic()

    def _pause(self) -> float:
        retry = self._timing.retry_interval * (1 + self._rng.random()) / 2
        if self.is_leading:
            pause = retry if self._last_error else self._timing.renew_interval
            return min(pause, self._seconds_left)
        return retry

    def _publish(self) -> None:
        if self.is_leading is not self._was_leading:
            self._was_leading = self.is_leading
            message = "leadership acquired" if self.is_leading else "leadership lost"
            _log.info(message, identity=self._lock.identity)
            self._has_changed.set()
            self._has_changed = asyncio.Event()

    async def _step_down(self) -> None:
        has_led, self._leads_until = self._leads_until > -inf, -inf
        self._publish()
        if has_led:
            with contextlib.suppress(errors.ApiError, TimeoutError):
                async with asyncio.timeout(self._timing.request_timeout):
                    await self._release()

    async def _release(self) -> None:
        for _ in range(_RELEASE_TRIES):
            record = await self._lock.read()
            if record is None or record.holder != self._lock.identity:
                return
            spec = {"holderIdentity": "", "renewTime": _micro_time(self._clock.now())}
            with contextlib.suppress(errors.ConflictError):
                await self._lock.write(record, spec)
                return


LEASES: Final = ApiResource("coordination.k8s.io", "v1", "leases")


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The content of the Lease."""

    resource_version: str
    spec: Mapping[str, Any]

    @classmethod
    def from_object(cls, body: Mapping[str, Any]) -> LeaseRecord:
        """Read it from a response."""
        return cls(body["metadata"]["resourceVersion"], body.get("spec") or {})

    @property
    def holder(self) -> str:
        """The identity of the leader; empty if there is none."""
        return self.spec.get("holderIdentity") or ""

    @property
    def lease_seconds(self) -> float:
        """The duration that the holder has promised; another version may use another one."""
        return float(self.spec.get("leaseDurationSeconds") or 0)


class LeaseLock:
    """Reads and writes the Lease for one candidate."""

    def __init__(self, api: ApiClient, namespace: str, name: str, identity: str) -> None:
        self._api = api
        self.path: Final = LEASES.at(namespace, name)
        self.identity: Final = identity

    async def read(self) -> LeaseRecord | None:
        """Return the record; None if there is no Lease yet."""
        try:
            return LeaseRecord.from_object(await self._api.get(self.path))
        except errors.ObjectNotFoundError:
            return None

    async def write(self, before: LeaseRecord | None, spec: Mapping[str, Any]) -> LeaseRecord:
        """Change fields of the record, or create the Lease; ConflictError if a race was lost."""
        if before is not None:
            version = {"resourceVersion": before.resource_version}
            changed = await self._api.patch(self.path, {"metadata": version, "spec": spec})
            return LeaseRecord.from_object(changed)
        path = self.path
        body = {
            "apiVersion": f"{LEASES.group}/{LEASES.version}",
            "kind": "Lease",
            "metadata": {"namespace": path.namespace, "name": path.name},
            "spec": spec,
        }
        return LeaseRecord.from_object(await self._api.create(LEASES.at(path.namespace), body))


def _micro_time(moment: datetime) -> str:
    """Format a time as the API's MicroTime, which needs microseconds even if they are 0."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
