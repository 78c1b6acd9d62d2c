"""Writing the rows of a submission with COPY, one table after the other.

Rows are formatted directly as text: building tuples first would double the cost, and each job has
several rows. Formatting runs ahead of sending by a bounded number of chunks, so that client and
server work at the same time.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workron.core import payloads
from workron.core.ids import JobId
from workron.core.plan import WIDE_FAN_IN, Kind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    from asyncpg import Connection
    from asyncpg.pool import PoolConnectionProxy

    from workron.core.plan import Plan, PlannedJob, SchedulingTerms


NULL: Final = "\\N"


def copy_line(*values: Any) -> str:
    """Format a row."""
    return "\t".join(map(_field, values)) + "\n"


def escape(text: str) -> str:
    """Escape a text for a row."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _field(value: Any) -> str:
    if value is None:
        return NULL
    # PostgreSQL does not read time zones with fractions of a minute.
    return escape(str(value.astimezone(UTC) if isinstance(value, datetime) else value))


if TYPE_CHECKING:
    Placed = Sequence[tuple[JobId, Plan]]
    Pools = Mapping[tuple[str, str], int]
    Table = tuple[str, tuple[str, ...], Iterable[str]]


_ESCAPE: Final = "\\"
_ESCAPED: Final = 2 * _ESCAPE
_COLUMNS: Final = {
    "job": (
        *(
            "id",
            "spec",
            "kind",
            "name",
            "index",
            "item",
            "group_id",
            "group_condition",
            "feeds_inputs",
        ),
        *("run", "priority", "pool", "max_losses", "start_after", "needs_proof"),
    ),
    "edge": ("upstream", "downstream", "condition"),
    "external_dependency": ("downstream", "namespace", "kind", "name", "condition"),
    "waiting": ("job", "remaining", "suspended", "wide", "priority"),
    "ready": ("job", "pool", "priority"),
    "deadline": ("job", "due"),
    # Last, because these take the longest to format: the server works on the others meanwhile.
    "spec": ("id", "body"),
    "run": (
        *("id", "last", "uid", "namespace", "kind", "name", "digest"),
        *("submitted_at", "metadata", "suspended", "priority", "generation"),
    ),
}


def tables(placed: Placed, pools: Pools, now: datetime) -> Iterator[Table]:
    """Return the tables with their columns and rows, in the order of copying."""
    rows: Mapping[str, Callable[[JobId, Plan], Iterable[str]]] = {
        "job": lambda base, plan: _jobs(base, plan, pools),
        "edge": _edges,
        "external_dependency": _external_dependencies,
        "waiting": _waiting,
        "ready": lambda base, plan: _ready(base, plan, pools),
        "deadline": lambda base, plan: _deadlines(base, plan, now),
        "spec": _specs,
        "run": lambda base, plan: _run(base, plan, now),
    }
    for table, columns in _COLUMNS.items():
        yield table, columns, itertools.chain.from_iterable(itertools.starmap(rows[table], placed))


def scheduled_jobs(placed: Placed) -> Iterator[JobId]:
    """Return the waiting jobs that wait for nothing but their start time."""
    for base, plan in placed:
        if all(terms.start_after is None for terms in plan.terms):
            continue
        for job, node in _waiting_jobs(base, plan):
            if not node.upstreams and not _is_suspended(plan, node):
                yield JobId(job)


def _run(base: JobId, plan: Plan, now: datetime) -> Iterator[str]:
    who = plan.identity
    last = base + len(plan.nodes) - 1
    metadata = json.dumps(dict(plan.metadata))
    yield copy_line(
        *(base, last, who.uid, who.namespace, who.kind, who.name, plan.digest),
        *(now, metadata, plan.is_suspended, plan.priority, plan.generation),
    )


def _specs(base: JobId, plan: Plan) -> Iterator[str]:
    # JSON text has no raw tabs or line ends.
    return (
        f"{base + number}\t{text.replace(_ESCAPE, _ESCAPED)}\n"
        for number, text in plan.encode_specs()
    )


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
    ends = _common_columns(base, plan, pools)
    for job, node in enumerate(plan.nodes, base):
        index = NULL if node.index is None else node.index
        item = NULL if node.item is None else escape(payloads.to_json(node.item))
        group_id = NULL if node.group_id is None else base + node.group_id
        yield (
            f"{job}\t{base + node.spec}\t{node.kind}\t{escape(node.name)}\t{index}\t{item}"
            f"\t{group_id}\t{node.group_condition or NULL}\t{node.feeds_inputs}\t{ends[node.spec]}"
        )


def _common_columns(base: JobId, plan: Plan, pools: Pools) -> list[str]:
    """Format for each spec the last columns, which all its jobs have in common."""
    namespace = plan.identity.namespace
    return _for_each(
        plan.terms,
        lambda terms: copy_line(
            *(base, plan.priority, pools[namespace, terms.pool]),
            *(terms.max_losses, terms.start_after, terms.needs_proof),
        ),
    )


def _for_each(
    every: Sequence[SchedulingTerms], line: Callable[[SchedulingTerms], str]
) -> list[str]:
    """Format terms once for all specs that share the same object."""
    lines = {id(terms): line(terms) for terms in {id(terms): terms for terms in every}.values()}
    return [lines[id(terms)] for terms in every]


def _is_suspended(plan: Plan, node: PlannedJob) -> bool:
    return plan.is_suspended and node.kind is Kind.JOB


def _waiting_jobs(base: JobId, plan: Plan) -> Iterator[tuple[int, PlannedJob]]:
    """Return the jobs that are not ready at once."""
    late = _late(plan)
    for job, node in enumerate(plan.nodes, base):
        if node.upstreams or node.kind is not Kind.JOB or late[node.spec]:
            yield job, node


def _late(plan: Plan) -> list[bool]:
    """Return for each spec whether even its jobs without upstreams are not ready."""
    return [plan.is_suspended or terms.start_after is not None for terms in plan.terms]


def _waiting(base: JobId, plan: Plan) -> Iterator[str]:
    for job, node in _waiting_jobs(base, plan):
        is_suspended = _is_suspended(plan, node)
        is_wide = node.kind is not Kind.JOB or node.upstreams > WIDE_FAN_IN
        remaining = node.upstreams + is_suspended
        yield f"{job}\t{remaining}\t{is_suspended}\t{is_wide}\t{plan.priority}\n"


def _ready(base: JobId, plan: Plan, pools: Pools) -> Iterator[str]:
    late, namespace = _late(plan), plan.identity.namespace
    ends = _for_each(
        plan.terms, lambda terms: copy_line(pools[namespace, terms.pool], plan.priority)
    )
    for job, node in enumerate(plan.nodes, base):
        if not (node.upstreams or node.kind is not Kind.JOB or late[node.spec]):
            yield f"{job}\t{ends[node.spec]}"


def _deadlines(base: JobId, plan: Plan, now: datetime) -> Iterator[str]:
    dues = [terms.deadline_seconds for terms in plan.terms]
    for job, node in enumerate(plan.nodes, base):
        seconds = dues[node.spec]
        if seconds is not None and node.kind is Kind.JOB:
            yield copy_line(job, now + timedelta(seconds=seconds))


_COPY_SECONDS: Final = 600.0
_BATCH: Final = 1 << 14
"""Characters formatted before the event loop may send."""
_CHUNK: Final = 1 << 16
"""Bytes per message."""
_AHEAD: Final = 32
"""Chunks that may wait to be sent: enough to even out the tables."""


class _Chunk(NamedTuple):
    """Encoded rows of one table."""

    table: str
    columns: tuple[str, ...]
    text: bytes


_END: Final = _Chunk("", (), b"")


async def copy_tables(
    connection: Connection | PoolConnectionProxy, tables: Iterable[Table]
) -> None:
    """Copy all rows; tables without rows are skipped."""
    chunks = _Chunks()
    producer = asyncio.create_task(chunks.produce(tables))
    try:
        while (first := await chunks.first()) is not _END:
            await connection.copy_to_table(
                first.table,
                schema_name="workron",
                columns=first.columns,
                source=chunks.of(first.table),
                timeout=_COPY_SECONDS,
            )
        await producer
    finally:
        producer.cancel()


class _Chunks:
    """A bounded queue of chunks that are formatted and not sent yet."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AHEAD)
        self._ahead: deque[_Chunk] = deque()
        self._has_chunk = asyncio.Event()

    async def produce(self, tables: Iterable[Table]) -> None:
        """Format all rows; the end marker is added even after an error."""
        try:
            for table, columns, rows in tables:
                async for text in _joined(rows):
                    await self._slots.acquire()
                    self._add(_Chunk(table, columns, text))
        finally:
            self._add(_END)

    async def first(self) -> _Chunk:
        """Return the next chunk without removing it; the end marker stays."""
        if not self._ahead:
            self._has_chunk.clear()
            await self._has_chunk.wait()
        return self._ahead[0]

    async def of(self, table: str) -> AsyncIterator[bytes]:
        """Remove and return the chunks of a table."""
        while (chunk := await self.first()).table == table:
            self._ahead.popleft()
            self._slots.release()
            yield chunk.text

    def _add(self, chunk: _Chunk) -> None:
        self._ahead.append(chunk)
        self._has_chunk.set()


async def _joined(rows: Iterable[str]) -> AsyncIterator[bytes]:
    """Combine rows into messages, with pauses for the event loop."""
    text = b""
    for piece in _pieces(rows):
        text += piece
        await asyncio.sleep(0)
        if len(text) >= _CHUNK:
            yield text
            text = b""
    if text:
        yield text


def _pieces(rows: Iterable[str]) -> Iterator[bytes]:
    some, size = [], 0
    for row in rows:
        some.append(row)
        size += len(row)
        if size >= _BATCH:
            yield "".join(some).encode()
            some, size = [], 0
    yield "".join(some).encode()
