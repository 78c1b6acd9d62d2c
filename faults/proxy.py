"""A proxy between a worker and PostgreSQL that can act at a named point of a call.

It understands just enough of the protocol to recognize the verb of a call: the text of a
statement when it is parsed, and its name when it is bound. At a point, before a verb's request
is forwarded or after its response has arrived, it performs one action on the connection, such as a
reset or dropping all data.
"""

import asyncio
import collections
import contextlib
import re
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib import parse

from faults.loop_thread import LoopThread

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_VERB = re.compile(rb"\bworkron\.(\w+)\(")
_RESET = struct.pack("ii", 1, 0)
_DISCONNECTED = (OSError, asyncio.IncompleteReadError, asyncio.CancelledError)


class Moment(Enum):
    """A moment of a call."""

    BEFORE = auto()
    """The request has arrived and is not forwarded yet: nothing is committed."""
    AMID = auto()
    """The request has just been forwarded: it may be committed or not."""
    AFTER = auto()
    """The response has arrived and is not forwarded yet: it is committed."""


class ProxyConnection:
    """One client's connection to the server."""

    def __init__(self, client: _Streams, server: _Streams) -> None:
        self.client = client
        self.server = server
        self.is_dropping = False
        self.is_reset = False

    def reset(self) -> None:
        """Reset it at both ends."""
        self.is_reset = True
        with contextlib.suppress(OSError):
            sock = self.client[1].get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        for _, writer in (self.client, self.server):
            writer.transport.abort()

    def drop(self) -> None:
        """Drop all data of both ends from now on, without a reset (half-open)."""
        self.is_dropping = True

    def send_request(self, message: bytes) -> None:
        """Forward a message of the client."""
        if self.is_open:
            self.server[1].write(message)

    def send_response(self, message: bytes) -> None:
        """Forward a message of the server."""
        if self.is_open:
            self.client[1].write(message)

    @property
    def is_open(self) -> bool:
        """Whether messages are forwarded."""
        return not (self.is_dropping or self.is_reset)


Action = Callable[[ProxyConnection], None]


@dataclass(slots=True)
class _Point:
    moment: Moment
    verb: str
    action: Action
    is_reached: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """The server that one worker uses as its PostgreSQL."""

    def __init__(self, loop: LoopThread, dsn: str) -> None:
        self._loop = loop
        self._dsn = parse.urlsplit(dsn)
        self._points: list[_Point] = []
        self._connections: dict[ProxyConnection, asyncio.Task[None] | None] = {}
        self.is_silent = False
        """Whether it drops the data of all connections."""
        self.is_refusing = False
        """Whether it resets every connection."""
        self.answered: collections.Counter[str] = collections.Counter()
        """The number of answered calls by verb."""
        self._server = loop.call(self._open())

    @property
    def dsn(self) -> str:
        """The DSN of the proxy."""
        login = self._dsn.netloc.rpartition("@")[0]
        port = self._server.sockets[0].getsockname()[1]
        parts = self._dsn._replace(netloc=f"{login}@127.0.0.1:{port}", query="sslmode=disable")
        return parts.geturl()

    def at(self, moment: Moment, verb: str, action: Action) -> threading.Event:
        """Perform an action once, at the next such point; the event is set when it is reached."""
        point = _Point(moment, verb, action)
        self._points.append(point)
        return point.is_reached

    def reset(self) -> None:
        """Reset all open connections; new ones are accepted."""
        self._loop.call(self._each(ProxyConnection.reset))

    def drop(self) -> None:
        """Make all open connections half-open; new ones are accepted."""
        self._loop.call(self._each(ProxyConnection.drop))

    def silence(self) -> None:
        """Make all connections half-open, including new ones."""
        self.is_silent = True
        self.drop()

    def refuse(self) -> None:
        """Reset all connections, including new ones."""
        self.is_refusing = True
        self.reset()

    def restore(self) -> None:
        """Accept new connections again, and reset the open ones."""
        self.is_silent = self.is_refusing = False
        self.reset()

    def close(self) -> None:
        """Stop listening, and close all connections."""
        self._loop.call(self._close())

    async def _open(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _close(self) -> None:
        self._server.close()
        tasks = [task for task in self._connections.values() if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _each(self, action: Action) -> None:
        for connection in list(self._connections):
            action(connection)

    async def _serve(self, *client: *_Streams) -> None:
        if self.is_refusing:
            client[1].transport.abort()
            return
        path = f"{dict(parse.parse_qsl(self._dsn.query))['host']}/.s.PGSQL.5432"
        try:
            server = await asyncio.open_unix_connection(path)
        except OSError:
            client[1].transport.abort()
            return
        connection = ProxyConnection(client, server)
        connection.is_dropping = self.is_silent
        self._connections[connection] = asyncio.current_task()
        try:
            await _Relay(connection, self).run()
        finally:
            del self._connections[connection]
            connection.reset()

    def reach(self, moment: Moment, verb: str, connection: ProxyConnection) -> None:
        """Perform the action of this point, if it has one."""
        for point in self._points:
            if (point.moment, point.verb) == (moment, verb):
                self._points.remove(point)
                point.action(connection)
                point.is_reached.set()
                return


class _Relay:
    """Forwards the messages of one connection, and recognizes the called verb."""

    def __init__(self, connection: ProxyConnection, proxy: Proxy) -> None:
        self._connection = connection
        self._proxy = proxy
        self._parsed: dict[bytes, str] = {}
        self._verb = ""
        self._pending = bytearray()

    async def run(self) -> None:
        """Forward in both directions until one end disconnects."""
        connection = self._connection
        with contextlib.suppress(*_DISCONNECTED):
            # The first message has no kind; a request to cancel another call consists of it only.
            length = await connection.client[0].readexactly(4)
            connection.send_request(
                length + await connection.client[0].readexactly(int.from_bytes(length) - 4)
            )
            await _wait_for_first(self._relay_requests(), self._relay_responses())

    async def _relay_requests(self) -> None:
        while True:
            message = await _message(self._connection.client[0])
            kind = message[:1]
            verb = self._verb_of(kind, message[5:])
            if verb:
                self._verb = verb
                self._proxy.reach(Moment.BEFORE, verb, self._connection)
            self._connection.send_request(message)
            if kind in b"SQ" and self._verb:
                self._proxy.reach(Moment.AMID, self._verb, self._connection)

    def _verb_of(self, kind: bytes, body: bytes) -> str:
        """Return the verb that this message calls, if any."""
        name, _, rest = body.partition(b"\0")
        if kind == b"P":
            self._parsed[name] = _verb_in(rest)
        if kind == b"B":
            return self._parsed.get(rest.partition(b"\0")[0], "")
        return _verb_in(body) if kind == b"Q" else ""

    async def _relay_responses(self) -> None:
        while True:
            message = await _message(self._connection.server[0])
            self._pending += message
            # A response is forwarded whole, so that an action after it precedes all of it.
            if not self._verb or message[:1] == b"Z":
                self._forward_response()

    def _forward_response(self) -> None:
        if self._verb:
            verb, self._verb = self._verb, ""
            self._proxy.answered[verb] += self._connection.is_open
            self._proxy.reach(Moment.AFTER, verb, self._connection)
        self._connection.send_response(bytes(self._pending))
        self._pending.clear()


def _verb_in(text: bytes) -> str:
    found = _VERB.search(text)
    return found[1].decode() if found else ""


async def _wait_for_first(*coroutines: "collections.abc.Coroutine[None, None, None]") -> None:
    tasks = [asyncio.ensure_future(one) for one in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:]) - 4)
