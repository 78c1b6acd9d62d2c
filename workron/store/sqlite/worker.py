"""The worker's interface; `claims` and `completion` have its larger operations."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from workron.core import errors, ids, payloads
from workron.core.ids import ClaimId, SessionKey
from workron.store import api
from workron.store.sqlite import completion, pools, requeue
from workron.store.sqlite.claims import claim, find_session
from workron.store.sqlite.engine import SqliteDatabase
from workron.store.types import HeartbeatReply, HeldClaim, LossKind, ReportResult, Session, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.store.sqlite.engine import Transaction
    from workron.store.types import (
        AttemptReport,
        ClaimedJob,
        ClaimRef,
        CompleteReply,
        Registration,
    )


class SqliteWorkerStore(SqliteDatabase, api.WorkerStore):
    """`api.WorkerStore`."""

    async def register(self, registration: Registration) -> Session:
        key = SessionKey(ids.mint_uuid(self._rng))
        return await self._write(partial(_register, registration=registration, key=key))

    async def heartbeat(self, key: SessionKey) -> HeartbeatReply:
        return await self._write(partial(_heartbeat, key=key))

    async def claim(self, key: SessionKey, claims: Sequence[ClaimId]) -> Sequence[ClaimedJob]:
        return await self._write(partial(claim, key=key, claims=claims))

    async def complete(
        self, key: SessionKey, reports: Sequence[AttemptReport], claims: Sequence[ClaimId] = ()
    ) -> CompleteReply:
        work = partial(completion.complete, key=key, reports=reports, claims=claims)
        return await (self._write_and_wake(work, worker=key) if reports else self._write(work))

    async def release(
        self, key: SessionKey, claims: Sequence[ClaimRef], lost: LossKind | None = None
    ) -> Sequence[ReportResult]:
        return await self._write_and_wake(partial(_release, key=key, claims=claims, lost=lost))

    async def append_output(
        self, key: SessionKey, claim: ClaimRef, chunk: int, data: bytes
    ) -> ReportResult:
        _check_chunk(chunk, data)
        return await self._write(
            partial(_append_output, key=key, claim=claim, chunk=chunk, data=data)
        )

    async def deregister(self, key: SessionKey) -> None:
        await self._write_and_wake(partial(_deregister, key=key))


def _register(tx: Transaction, registration: Registration, key: SessionKey) -> Session:
    pool = tx.row("register.find_pool", hash=pools.token_digest(registration.token))
    if pool is None:
        raise errors.TokenError("the token is unknown or has expired; create a new one")
    who = {"pool": pool["id"], "name": registration.name, "boot": str(registration.boot)}
    if tx.row("register.find_session", **who) is None:
        lease = pool["lease_seconds"]
        tx.run(
            "register.insert_worker", session=str(key), slots=registration.slots, lease=lease, **who
        )
    worker = tx.row("register.find_session", **who)
    session = SessionKey(UUID(worker["session"]))
    return Session(worker["id"], session, worker["lease_seconds"], pool["namespace"], pool["name"])


def _heartbeat(tx: Transaction, key: SessionKey) -> HeartbeatReply:
    session = str(key)
    if not tx.run("heartbeat.increment", session=session):
        find_session(tx, key)
    answer = tx.row("heartbeat.reply", session=session)
    if answer["heartbeats"] == 1:
        requeue.reap_older_sessions(tx, answer)
    held = [
        HeldClaim(job, ClaimId(UUID(claim)), fence, signal and Signal(signal))
        for job, claim, fence, signal in tx.rows("heartbeat.held_claims", session=session)
    ]
    return HeartbeatReply(held, is_draining=bool(answer["draining"]), database=answer["database"])


def _release(
    tx: Transaction, key: SessionKey, claims: Sequence[ClaimRef], lost: LossKind | None
) -> list[ReportResult]:
    tx.clear()
    worker = find_session(tx, key)["id"]
    wanted = json.dumps([[str(ref.claim), ref.fence] for ref in claims])
    answers = [
        ReportResult(row["answer"])
        for row in tx.rows("release.answers", claims=wanted, worker=worker)
    ]
    tx.run("release.select_claims", claims=wanted, worker=worker)
    requeue.requeue_claims(
        tx,
        "Released" if lost is None else "Lost",
        losses=int(lost is LossKind.ALONE),
        alone=lost is LossKind.TOGETHER,
        proven=True,
    )
    return answers


def _check_chunk(chunk: int, data: bytes) -> None:
    if not 0 <= chunk < payloads.MAX_CHUNKS:
        raise errors.StoreDataError(
            f"invalid output chunk number {chunk}: the range is 0 to {payloads.MAX_CHUNKS - 1}"
        )
    if len(data) > payloads.MAX_CHUNK_BYTES:
        raise errors.StoreDataError(
            f"an output chunk has {len(data)} bytes; the limit is {payloads.MAX_CHUNK_BYTES}"
        )


def _append_output(
    tx: Transaction, key: SessionKey, claim: ClaimRef, chunk: int, data: bytes
) -> ReportResult:
    worker = find_session(tx, key)["id"]
    attempt = tx.row(
        "append_output.find_attempt", claim=str(claim.claim), fence=claim.fence, worker=worker
    )
    if attempt is None:
        return ReportResult.STALE
    chunk_key = {"job": attempt["job"], "attempt": attempt["attempt"], "chunk": chunk}
    stored = tx.row("append_output.stored_chunks", **chunk_key)
    if stored["is_known"]:
        return ReportResult.ALREADY
    if stored["bytes"] + len(data) > payloads.MAX_STREAM_BYTES:
        raise errors.StoreDataError(
            f"an output chunk has {len(data)} bytes and {stored['bytes']} are stored; the limit"
            f" of an attempt is {payloads.MAX_STREAM_BYTES}"
        )
    tx.run("append_output.insert_chunk", data=data, **chunk_key)
    return ReportResult.ACCEPTED


def _deregister(tx: Transaction, key: SessionKey) -> bool:
    worker = tx.row("find_session", session=str(key))
    if worker is None:
        return False
    tx.clear()
    tx.run("deregister.select_claims", worker=worker["id"])
    requeue.requeue_claims(tx, "Released", proven=True)
    tx.run("deregister.delete_worker", worker=worker["id"])
    return True
