"""A submission as rows: which table gets what, as COPY reads it. Pure; called by `submit`.

A row is put together in one go: there are several for each job, and to have them as tuples first
would double what they cost.
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
PAUSE: Final = ""
"""In the place of a row: there is none yet, and whoever sends them may look after the server."""


def copy_line(*values: Any) -> str:
    """Give a row."""
    return "\t".join(map(_field, values)) + "\n"


def escape(text: str) -> str:
    """Give a text as it stands within a row."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _field(value: Any) -> str:
    if value is None:
        return NULL
    # Its zone may be of fractions of a minute, which PostgreSQL does not read.
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
    "edge": ("parent", "child", "condition"),
    "unbound": ("child", "namespace", "kind", "name", "condition"),
    "waiting": ("job", "remaining", "held", "wide", "priority"),
    "ready": ("job", "pool", "priority"),
    "deadline": ("job", "due"),
    # Last, for these take the longest to be worked out: meanwhile the server has the others.
    "spec": ("id", "body"),
    "run": (
        *("id", "last", "uid", "namespace", "kind", "name", "digest"),
        *("submitted_at", "metadata", "held", "priority", "generation"),
    ),
}


def tables(placed: Placed, pools: Pools, now: datetime) -> Iterator[Table]:
    """Give each table its columns and its rows, in the order in which they are copied."""
    rows: Mapping[str, Callable[[JobId, Plan], Iterable[str]]] = {
        "job": lambda base, plan: _jobs(base, plan, pools),
        "edge": _edges,
        "unbound": _unbound,
        "waiting": _waiting,
        "ready": lambda base, plan: _ready(base, plan, pools),
        "deadline": lambda base, plan: _deadlines(base, plan, now),
        "spec": _specs,
        "run": lambda base, plan: _run(base, plan, now),
    }
    for table, columns in _COLUMNS.items():
        yield table, columns, itertools.chain.from_iterable(itertools.starmap(rows[table], placed))


def idle(placed: Placed) -> Iterator[JobId]:
    """Give the waiting jobs that wait for nothing but the time of day."""
    for base, plan in placed:
        if all(terms.start_after is None for terms in plan.terms):
            continue
        for job, node in _waiters(base, plan):
            if not node.upstreams and not _is_held(plan, node):
                yield JobId(job)


def _run(base: JobId, plan: Plan, now: datetime) -> Iterator[str]:
    yield from (PAUSE for _ in plan.digest.steps())
    who = plan.identity
    last = base + len(plan.nodes) - 1
    metadata = json.dumps(dict(plan.metadata))
    yield copy_line(
        *(base, last, who.uid, who.namespace, who.kind, who.name, plan.digest()),
        *(now, metadata, plan.is_suspended, plan.priority, plan.generation),
    )


def _specs(base: JobId, plan: Plan) -> Iterator[str]:
    # JSON has no tabs or ends of lines but as escapes.
    return (
        f"{base + number}\t{text.replace(_ESCAPE, _ESCAPED)}\n"
        for number, text in plan.specs.worded()
    )


def _edges(base: JobId, plan: Plan) -> Iterator[str]:
    return (
        f"{base + edge.upstream}\t{base + edge.downstream}\t{edge.condition}\n"
        for edge in plan.edges
    )


def _unbound(base: JobId, plan: Plan) -> Iterator[str]:
    namespace = plan.identity.namespace
    return (
        copy_line(base + one.downstream, namespace, one.kind, one.name, one.condition)
        for one in plan.external
    )


def _jobs(base: JobId, plan: Plan, pools: Pools) -> Iterator[str]:
    ends = _ends(base, plan, pools)
    for job, node in enumerate(plan.nodes, base):
        index = NULL if node.index is None else node.index
        item = NULL if node.item is None else escape(payloads.to_json(node.item))
        group_id = NULL if node.group_id is None else base + node.group_id
        yield (
            f"{job}\t{base + node.spec}\t{node.kind}\t{escape(node.name)}\t{index}\t{item}"
            f"\t{group_id}\t{node.group_condition or NULL}\t{node.feeds_inputs}\t{ends[node.spec]}"
        )


def _ends(base: JobId, plan: Plan, pools: Pools) -> list[str]:
    """Word what all jobs of a spec have in common, which is the end of their rows."""
    namespace = plan.identity.namespace
    return _of_each(
        plan.terms,
        lambda terms: copy_line(
            *(base, plan.priority, pools[namespace, terms.pool]),
            *(terms.max_losses, terms.start_after, terms.needs_proof),
        ),
    )


def _of_each(every: Sequence[SchedulingTerms], word: Callable[[SchedulingTerms], str]) -> list[str]:
    """Word terms once for all specs that share them, which know each other by nothing else."""
    worded = {id(terms): word(terms) for terms in {id(terms): terms for terms in every}.values()}
    return [worded[id(terms)] for terms in every]


def _is_held(plan: Plan, node: PlannedJob) -> bool:
    return plan.is_suspended and node.kind is Kind.JOB


def _waiters(base: JobId, plan: Plan) -> Iterator[tuple[int, PlannedJob]]:
    """Give the jobs that are not ready at once."""
    late = _late(plan)
    for job, node in enumerate(plan.nodes, base):
        if node.upstreams or node.kind is not Kind.JOB or late[node.spec]:
            yield job, node


def _late(plan: Plan) -> list[bool]:
    """Tell of each spec whether even a job that waits for no other is not ready."""
    return [plan.is_suspended or terms.start_after is not None for terms in plan.terms]


def _waiting(base: JobId, plan: Plan) -> Iterator[str]:
    for job, node in _waiters(base, plan):
        is_held = _is_held(plan, node)
        is_wide = node.kind is not Kind.JOB or node.upstreams > WIDE_FAN_IN
        yield f"{job}\t{node.upstreams + is_held}\t{is_held}\t{is_wide}\t{plan.priority}\n"


def _ready(base: JobId, plan: Plan, pools: Pools) -> Iterator[str]:
    late, namespace = _late(plan), plan.identity.namespace
    ends = _of_each(
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
_BREATH: Final = 1 << 14
"""So much is worked out without a break, in which the server is given what it has room for."""
_CHUNK: Final = 1 << 16
"""So much is sent at once: each message has its price."""
_AHEAD: Final = 32
"""So many chunks may wait to be sent: enough to even out the tables, and never much memory."""


class _Chunk(NamedTuple):
    """Some rows of one table."""

    table: str
    columns: tuple[str, ...]
    text: bytes


_END: Final = _Chunk("", (), b"")


async def copy_tables(
    connection: Connection | PoolConnectionProxy, tables: Iterable[Table]
) -> None:
    """Copy all rows, and leave out the tables that have none."""
    chunks = _Chunks()
    working = asyncio.create_task(chunks.work_out(tables))
    try:
        while (first := await chunks.first()) is not _END:
            await connection.copy_to_table(
                first.table,
                schema_name="workron",
                columns=first.columns,
                source=chunks.of(first.table),
                timeout=_COPY_SECONDS,
            )
        await working
    finally:
        working.cancel()


class _Chunks:
    """Those that are worked out and not sent yet."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(_AHEAD)
        self._ahead: deque[_Chunk] = deque()
        self._has_come = asyncio.Event()

    async def work_out(self, tables: Iterable[Table]) -> None:
        """Go through all rows, and tell the end of them also where it comes too early."""
        try:
            for table, columns, rows in tables:
                async for text in _joined(rows):
                    await self._room.acquire()
                    self._add(_Chunk(table, columns, text))
        finally:
            self._add(_END)

    async def first(self) -> _Chunk:
        """Give the one that is to be sent next, and keep it; the end stays the first for good."""
        if not self._ahead:
            self._has_come.clear()
            await self._has_come.wait()
        return self._ahead[0]

    async def of(self, table: str) -> AsyncIterator[bytes]:
        """Take the chunks of a table."""
        while (chunk := await self.first()).table == table:
            self._ahead.popleft()
            self._room.release()
            yield chunk.text

    def _add(self, chunk: _Chunk) -> None:
        self._ahead.append(chunk)
        self._has_come.set()


async def _joined(rows: Iterable[str]) -> AsyncIterator[bytes]:
    """Put rows together until they are worth a message, and pause at times."""
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
        if size >= _BREATH or row == PAUSE:
            yield "".join(some).encode()
            some, size = [], 0
    yield "".join(some).encode()
