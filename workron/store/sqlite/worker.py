"""The worker's door: register, beat, claim, complete, release, append_output, leave.

One of the doors of `store`; claims and reports are worked out in `claiming` and `reporting`.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from workron.core import errors, ids, payloads
from workron.core.ids import ClaimId, Fence, JobId, SessionKey, WorkerId
from workron.store.sqlite import completion, requeue, tokens
from workron.store.sqlite.claims import claim, worker_of
from workron.store.sqlite.engine import SqliteVerbs
from workron.store.types import HeartbeatReply, HeldClaim, ReportResult, Session, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.store.sqlite.engine import Transaction
    from workron.store.types import (
        AttemptReport,
        ClaimedJob,
        ClaimRef,
        CompleteReply,
        LossKind,
        Registration,
    )


class SqliteWorkerVerbs(SqliteVerbs):
    """All that a worker can do."""

    async def register(self, registration: Registration) -> Session:
        """Enter a worker."""
        key = SessionKey(ids.mint_uuid(self._rng))
        return await self._write(partial(_register, registration=registration, key=key))

    async def heartbeat(self, key: SessionKey) -> HeartbeatReply:
        """Prove life, and learn what is still held."""
        return await self._write(partial(_beat, key=key))

    async def claim(self, key: SessionKey, claims: Sequence[ClaimId]) -> Sequence[ClaimedJob]:
        """Take ready jobs."""
        return await self._write(partial(claim, key=key, claims=claims))

    async def complete(
        self, key: SessionKey, ends: Sequence[AttemptReport], claims: Sequence[ClaimId] = ()
    ) -> CompleteReply:
        """Report ends and claim anew."""
        work = partial(completion.complete, key=key, ends=ends, claims=claims)
        return await (self._stir(work, doer=key) if ends else self._write(work))

    async def release(
        self, key: SessionKey, rights: Sequence[ClaimRef], lost: LossKind | None = None
    ) -> Sequence[ReportResult]:
        """Hand claims back."""
        return await self._stir(partial(_release, key=key, rights=rights, lost=lost))

    async def append_output(
        self, key: SessionKey, right: ClaimRef, chunk: int, data: bytes
    ) -> ReportResult:
        """Store a piece of a running job's output."""
        _check_piece(chunk, data)
        return await self._write(
            partial(_append_output, key=key, right=right, chunk=chunk, data=data)
        )

    async def deregister(self, key: SessionKey) -> None:
        """Forget a worker; what it still holds is released."""
        await self._stir(partial(_leave, key=key))


def _register(tx: Transaction, registration: Registration, key: SessionKey) -> Session:
    pool = tx.row("register.pool", hash=tokens.digest(registration.token))
    if pool is None:
        raise errors.TokenError("no pool has this token, or it has expired; ask for a new one")
    who = {"pool": pool["id"], "name": registration.name, "boot": str(registration.boot)}
    if tx.row("register.known", **who) is None:
        lease = pool["lease_seconds"]
        tx.run("register.enter", session=str(key), slots=registration.slots, lease=lease, **who)
    worker = tx.row("register.known", **who)
    return Session(
        WorkerId(worker["id"]),
        SessionKey(UUID(worker["session"])),
        worker["lease_seconds"],
        pool["namespace"],
        pool["name"],
    )


def _beat(tx: Transaction, key: SessionKey) -> HeartbeatReply:
    session = str(key)
    if not tx.run("heartbeat.count", session=session):
        worker_of(tx, key)
    answer = tx.row("heartbeat.answer", session=session)
    if answer["beats"] == 1:
        requeue.reap_older_sessions(tx, answer)
    held = [_held(row) for row in tx.rows("heartbeat.held", session=session)]
    return HeartbeatReply(held, is_draining=bool(answer["draining"]), database=answer["database"])


def _held(row: Any) -> HeldClaim:
    return HeldClaim(
        JobId(row["job"]),
        ClaimId(UUID(row["claim"])),
        Fence(row["fence"]),
        row["mark"] and Signal(row["mark"]),
    )


def _release(
    tx: Transaction, key: SessionKey, rights: Sequence[ClaimRef], lost: LossKind | None
) -> list[ReportResult]:
    tx.clear()
    terms = requeue.requeue_terms(lost)
    worker = worker_of(tx, key)["id"]
    wanted = json.dumps([[str(right.claim), right.fence] for right in rights])
    answers = [
        ReportResult(row["answer"])
        for row in tx.rows("release.answers", rights=wanted, worker=worker)
    ]
    tx.run("release.pick", rights=wanted, worker=worker)
    requeue.requeue_claims(tx, terms)
    return answers


def _check_piece(chunk: int, data: bytes) -> None:
    if not 0 <= chunk < payloads.MAX_CHUNKS:
        raise errors.StoreDataError(
            f"a piece of output cannot have the number {chunk};"
            f" they are counted from 0 to {payloads.MAX_CHUNKS - 1}"
        )
    if len(data) > payloads.MAX_CHUNK_BYTES:
        raise errors.StoreDataError(
            f"a piece of output has {len(data)} bytes; it may have {payloads.MAX_CHUNK_BYTES}"
        )


def _append_output(
    tx: Transaction, key: SessionKey, right: ClaimRef, chunk: int, data: bytes
) -> ReportResult:
    worker = worker_of(tx, key)["id"]
    attempt = tx.row(
        "append_output.standing", claim=str(right.claim), fence=right.fence, worker=worker
    )
    if attempt is None:
        return ReportResult.STALE
    piece = {"job": attempt["job"], "attempt": attempt["attempt"], "chunk": chunk}
    stored = tx.row("append_output.stored", **piece)
    if stored["is_known"]:
        return ReportResult.ALREADY
    if stored["bytes"] + len(data) > payloads.MAX_STREAM_BYTES:
        raise errors.StoreDataError(
            f"a piece of output has {len(data)} bytes and {stored['bytes']} are stored;"
            f" an attempt may have {payloads.MAX_STREAM_BYTES}"
        )
    tx.run("append_output.append", data=data, **piece)
    return ReportResult.ACCEPTED


def _leave(tx: Transaction, key: SessionKey) -> bool:
    worker = tx.row("session.worker", session=str(key))
    if worker is None:
        return False
    tx.clear()
    tx.run("deregister.pick", worker=worker["id"])
    requeue.requeue_claims(tx, requeue.RELEASED)
    tx.run("deregister.forget", worker=worker["id"])
    return True
