"""Writing the rows of a submission with COPY, one table after the other.

Rows are formatted directly as text: building tuples first would double the cost, and each job has
several rows. Formatting runs ahead of sending by a bounded number of messages, so that client and
server work at the same time.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from workron.core import payloads
from workron.core.ids import JobId
from workron.core.plan import KINDS_WITH_DEADLINE, WIDE_FAN_IN, Kind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    from asyncpg import Connection
    from asyncpg.pool import PoolConnectionProxy

    from workron.core.plan import Plan, PlannedJob, SchedulingTerms

    Placed = Sequence[tuple[JobId, Plan]]
    Pools = Mapping[tuple[str, str], int]
    Table = tuple[str, tuple[str, ...], Iterable[str]]


_NULL: Final = "\\N"
_LARGE_RUN: Final = 1000
"""Jobs of a run that has the transaction of its submission itself, not in each ready job."""
_COLUMNS: Final = {
    "job": "id spec kind name index item group_id group_condition feeds_inputs run priority pool"
    " max_losses start_after needs_proof max_failures",
    "edge": "upstream downstream condition",
    "external_dependency": "downstream namespace kind name condition",
    "waiting": "job remaining suspended wide priority",
    "ready": "job pool priority inserted_by",
    "deadline": "job due",
    # Last, because these take the longest to format: the server works on the others meanwhile.
    "spec": "id body",
    "run": "id last uid namespace kind name digest submitted_at metadata suspended priority"
    " generation finally_from fail_fast inserted_by",
}


def tables(placed: Placed, pools: Pools, now: datetime, transaction: int) -> Iterator[Table]:
    """Return the tables with their columns and rows, in the order of copying."""
    rows: Mapping[str, Callable[[JobId, Plan], Iterable[str]]] = {
        "job": partial(_jobs, pools=pools),
        "edge": _edges,
        "external_dependency": _external_dependencies,
        "waiting": _waiting,
        "ready": partial(_ready, pools=pools, transaction=transaction),
        "deadline": partial(_deadlines, now=now),
        "spec": _specs,
        "run": partial(_run, now=now, transaction=transaction),
    }
    for table, columns in _COLUMNS.items():
        lines = itertools.chain.from_iterable(itertools.starmap(rows[table], placed))
        yield table, tuple(columns.split()), lines


def scheduled_jobs(placed: Placed) -> Iterator[JobId]:
    """Return the waiting jobs that wait for nothing but their start time."""
    for base, plan in placed:
        if any(terms.start_after is not None for terms in plan.terms):
            for job, node in _nodes(base, plan, ready=False):
                if not node.upstreams and not _is_suspended(plan, node):
                    yield JobId(job)


def copy_line(*values: Any) -> str:
    """Format a row."""
    return "\t".join(map(_field, values)) + "\n"


def _field(value: Any) -> str:
    if value is None:
        return _NULL
    # PostgreSQL does not read time zones with fractions of a minute.
    return _escape(str(value.astimezone(UTC) if isinstance(value, datetime) else value))


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _run(base: JobId, plan: Plan, now: datetime, transaction: int) -> Iterator[str]:
    who = plan.identity
    last = base + len(plan.nodes) - 1
    metadata = json.dumps(dict(plan.metadata))
    yield copy_line(
        *(base, last, who.uid, who.namespace, who.kind, who.name, plan.digest()),
        *(now, metadata, plan.is_suspended, plan.priority, plan.generation),
        *(plan.finally_from and base + plan.finally_from, plan.is_fail_fast),
        transaction if _is_large(plan) else None,
    )


def _specs(base: JobId, plan: Plan) -> Iterator[str]:
    # JSON text has no raw tabs or line ends.
    for number, text in plan.encode_specs():
        body = text.replace("\\", "\\\\")
        yield f"{base + number}\t{body}\n"


def _edges(base: JobId, plan: Plan) -> Iterator[str]:
    return (
        f"{base + edge.upstream}\t{base + edge.downstream}\t{edge.condition}\n"
        for edge in plan.edges
    )


def _external_dependencies(base: JobId, plan: Plan) -> Iterator[str]:
    namespace = plan.identity.namespace
    return (
        copy_line(base + one.downstream, namespace, one.kind, one.name, one.condition)
        for one in plan.external
    )


def _jobs(base: JobId, plan: Plan, pools: Pools) -> Iterator[str]:
    namespace = plan.identity.namespace
    ends = _for_each(
        plan.terms,
        lambda terms: copy_line(
            *(base, plan.priority, pools[namespace, terms.pool]),
            *(terms.max_losses, terms.start_after, terms.needs_proof, terms.max_failures),
        ),
    )
    for job, node in enumerate(plan.nodes, base):
        index = _NULL if node.index is None else node.index
        item = _NULL if node.item is None else _escape(payloads.to_json(node.item))
        group_id = _NULL if node.group_id is None else base + node.group_id
        yield (
            f"{job}\t{base + node.spec}\t{node.kind}\t{_escape(node.name)}\t{index}\t{item}"
            f"\t{group_id}\t{node.group_condition or _NULL}\t{node.feeds_inputs}\t{ends[node.spec]}"
        )


def _for_each(
    every: Sequence[SchedulingTerms], line: Callable[[SchedulingTerms], str]
) -> list[str]:
    """Format terms once for all specs that share the same object."""
    lines = {id(terms): line(terms) for terms in {id(terms): terms for terms in every}.values()}
    return [lines[id(terms)] for terms in every]


def _is_large(plan: Plan) -> bool:
    return len(plan.nodes) >= _LARGE_RUN


def _is_suspended(plan: Plan, node: PlannedJob) -> bool:
    return plan.is_suspended and node.kind is Kind.JOB


def _nodes(base: JobId, plan: Plan, *, ready: bool) -> Iterator[tuple[int, PlannedJob]]:
    """Return the jobs that are ready at once, or the others."""
    late = [plan.is_suspended or terms.start_after is not None for terms in plan.terms]
    for job, node in enumerate(plan.nodes, base):
        is_waiting = node.upstreams or node.kind is not Kind.JOB or late[node.spec]
        if ready is not bool(is_waiting):
            yield job, node


def _waiting(base: JobId, plan: Plan) -> Iterator[str]:
    for job, node in _nodes(base, plan, ready=False):
        is_suspended = _is_suspended(plan, node)
        is_wide = node.kind is not Kind.JOB or node.upstreams > WIDE_FAN_IN
        remaining = node.upstreams + is_suspended
        yield f"{job}\t{remaining}\t{is_suspended}\t{is_wide}\t{plan.priority}\n"


def _ready(base: JobId, plan: Plan, pools: Pools, transaction: int) -> Iterator[str]:
    namespace = plan.identity.namespace
    inserted_by = None if _is_large(plan) else transaction
    ends = _for_each(
        plan.terms,
        lambda terms: copy_line(pools[namespace, terms.pool], plan.priority, inserted_by),
    )
    for job, node in _nodes(base, plan, ready=True):
        yield f"{job}\t{ends[node.spec]}"


def _deadlines(base: JobId, plan: Plan, now: datetime) -> Iterator[str]:
    dues = [terms.deadline_seconds for terms in plan.terms]
    for job, node in enumerate(plan.nodes, base):
        seconds = dues[node.spec]
        if seconds is not None and node.kind in KINDS_WITH_DEADLINE:
            yield copy_line(job, now + timedelta(seconds=seconds))


_COPY_SECONDS: Final = 600.0
_BATCH: Final = 1 << 14
"""Characters formatted before the event loop may send."""
_MESSAGE: Final = 1 << 16
"""Bytes per message."""
_AHEAD: Final = 32
"""Messages that may wait to be sent: enough to even out the tables."""


async def copy_tables(
    connection: Connection | PoolConnectionProxy, tables: Iterable[Table]
) -> None:
    """Copy all rows; tables without rows are skipped."""
    formatted: asyncio.Queue[tuple[str, tuple[str, ...], bytes] | None] = asyncio.Queue(_AHEAD)
    message: tuple[str, tuple[str, ...], bytes] | None = None

    async def produce() -> None:
        try:
            for table, columns, rows in tables:
                async for text in _messages(rows):
                    await formatted.put((table, columns, text))
        except Exception:
            # The copy ends, and `await producer` raises the error.
            await formatted.put(None)
            raise
        await formatted.put(None)

    async def messages(table: str) -> AsyncIterator[bytes]:
        nonlocal message
        while message is not None and message[0] == table:
            yield message[2]
            message = await formatted.get()

    producer = asyncio.create_task(produce())
    try:
        message = await formatted.get()
        while message is not None:
            await connection.copy_to_table(
                message[0],
                schema_name="workron",
                columns=message[1],
                source=messages(message[0]),
                timeout=_COPY_SECONDS,
            )
        await producer
    finally:
        producer.cancel()


async def _messages(rows: Iterable[str]) -> AsyncIterator[bytes]:
    """Combine rows into messages, with pauses for the event loop."""
    message, batch, size = b"", [], 0
    for row in rows:
        batch.append(row)
        size += len(row)
        if size >= _BATCH:
            message += "".join(batch).encode()
            batch, size = [], 0
            await asyncio.sleep(0)
            if len(message) >= _MESSAGE:
                yield message
                message = b""
    message += "".join(batch).encode()
    if message:
        yield message
