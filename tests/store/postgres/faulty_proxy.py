"""A proxy between a store and PostgreSQL that a test can disconnect, and that can drop an answer.

It forwards each message of the protocol, so that it can distinguish the execution of a statement
from its preparation.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib import parse

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class FaultyProxy:
    """A proxy on a port of its own."""

    def __init__(self, dsn: str) -> None:
        self._dsn = parse.urlsplit(dsn)
        self._loses: bytes | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = 0

    @property
    def dsn(self) -> str:
        """Return the DSN of the proxy."""
        login = self._dsn.netloc.rpartition("@")[0]
        netloc = f"{login}@127.0.0.1:{self._port}"
        return self._dsn._replace(netloc=netloc, query="sslmode=disable").geturl()

    async def mend(self) -> None:
        """Accept connections, on the same port as before if it was cut."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Drop all connections, and refuse new ones."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def lose_answer_to(self, statement: str) -> None:
        """Let the server execute the next statement that contains this, and drop its answer."""
        self._loses = statement.encode()

    async def _serve(self, *client: *_Streams) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        server = await self._reach()
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._carry(client, server)
        finally:
            for _, writer in (client, server):
                await hang_up(writer)

    async def _reach(self) -> _Streams:
        query = dict(parse.parse_qsl(self._dsn.query))
        port = self._dsn.port or 5432
        if "host" in query:
            return await asyncio.open_unix_connection(f"{query['host']}/.s.PGSQL.{port}")
        return await asyncio.open_connection(self._dsn.hostname, port)

    async def _carry(self, client: _Streams, server: _Streams) -> None:
        length = await client[0].readexactly(4)
        server[1].write(length + await client[0].readexactly(int.from_bytes(length) - 4))
        line = _Line(client, server)
        await asyncio.gather(self._carry_questions(line), self._carry_answers(line))

    async def _carry_questions(self, line: "_Line") -> None:
        parsed: dict[bytes, bytes] = {}
        while True:
            kind, body = await line.question()
            name, _, rest = body.partition(b"\0")
            if kind == b"P":
                parsed[name] = rest
            # A statement is bound by the name under which it was parsed, or sent as text.
            text = parsed.get(body.split(b"\0")[1], b"") if kind == b"B" else body
            if self._loses and kind in {b"B", b"Q"} and self._loses in text:
                self._loses, line.is_losing = None, True
            line.ask(kind, body)

    async def _carry_answers(self, line: "_Line") -> None:
        while True:
            kind, body = await line.answer()
            if not line.is_losing:
                line.give(kind, body)
            elif kind == b"Z":
                raise ConnectionResetError("the answer is lost")


class _Line:
    """The two connections of one client."""

    def __init__(self, client: _Streams, server: _Streams) -> None:
        self._client, self._server = client, server
        self.is_losing = False

    async def question(self) -> tuple[bytes, bytes]:
        return await _message(self._client[0])

    async def answer(self) -> tuple[bytes, bytes]:
        return await _message(self._server[0])

    def ask(self, kind: bytes, body: bytes) -> None:
        self._server[1].write(kind + (len(body) + 4).to_bytes(4) + body)

    def give(self, kind: bytes, body: bytes) -> None:
        self._client[1].write(kind + (len(body) + 4).to_bytes(4) + body)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection whatever state it is in, and wait until it is closed."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    return head[:1], await reader.readexactly(int.from_bytes(head[1:]) - 4)


@contextlib.asynccontextmanager
async def made_to(dsn: str) -> AsyncIterator[FaultyProxy]:
    wire = FaultyProxy(dsn)
    await wire.mend()
    try:
        yield wire
    finally:
        await wire.cut()
