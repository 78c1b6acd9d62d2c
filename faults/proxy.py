"""A proxy between a worker and PostgreSQL at which something can be done at a named point.

It understands just enough of the protocol to tell which verb a client calls: the text of a
statement when it is parsed, and its name when it is bound. At a point, before a verb's request is
passed on or after its answer has come, it carries out one deed, which may cut the line or hush it.
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
_GONE = (OSError, asyncio.IncompleteReadError, asyncio.CancelledError)


class Moment(Enum):
    """Where in the course of a call."""

    BEFORE = auto()
    """Its request has come, and is not passed on yet: nothing is committed."""
    AMID = auto()
    """Its request has just been passed on: it may be committed, or not."""
    AFTER = auto()
    """Its answer has come, and is not passed back yet: it is committed."""


class Line:
    """One client's connection to the server."""

    def __init__(self, client: _Streams, server: _Streams) -> None:
        self.client = client
        self.server = server
        self.is_hushed = False
        self.is_cut = False

    def cut(self) -> None:
        """Reset it at both ends."""
        self.is_cut = True
        with contextlib.suppress(OSError):
            sock = self.client[1].get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        for _, writer in (self.client, self.server):
            writer.transport.abort()

    def hush(self) -> None:
        """Swallow what comes from either end from now on; neither is told."""
        self.is_hushed = True

    def ask(self, message: bytes) -> None:
        """Pass on what the client says."""
        if self.is_open:
            self.server[1].write(message)

    def answer(self, message: bytes) -> None:
        """Pass back what the server says."""
        if self.is_open:
            self.client[1].write(message)

    @property
    def is_open(self) -> bool:
        """Whether anything still goes through."""
        return not (self.is_hushed or self.is_cut)


Deed = Callable[[Line], None]


@dataclass(slots=True)
class _Point:
    moment: Moment
    verb: str
    deed: Deed
    is_reached: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """What one worker takes for its PostgreSQL."""

    def __init__(self, loop: LoopThread, dsn: str) -> None:
        self._loop = loop
        self._dsn = parse.urlsplit(dsn)
        self._points: list[_Point] = []
        self._lines: dict[Line, asyncio.Task[None] | None] = {}
        self.is_silent = False
        """Whether it swallows whatever comes on any line."""
        self.is_refusing = False
        """Whether it resets every line."""
        self.answered: collections.Counter[str] = collections.Counter()
        """How many calls of each verb were answered."""
        self._server = loop.call(self._open())

    @property
    def dsn(self) -> str:
        """Where to connect to."""
        login = self._dsn.netloc.rpartition("@")[0]
        port = self._server.sockets[0].getsockname()[1]
        parts = self._dsn._replace(netloc=f"{login}@127.0.0.1:{port}", query="sslmode=disable")
        return parts.geturl()

    def at(self, moment: Moment, verb: str, deed: Deed) -> threading.Event:
        """Do that once, at the next such point; the event says that it was reached."""
        point = _Point(moment, verb, deed)
        self._points.append(point)
        return point.is_reached

    def cut(self) -> None:
        """Reset all lines that there are; new ones may be made."""
        self._loop.call(self._each(Line.cut))

    def hush(self) -> None:
        """Make all lines that there are half-open; new ones may be made."""
        self._loop.call(self._each(Line.hush))

    def silence(self) -> None:
        """Make all lines half-open, those too that are made from now on."""
        self.is_silent = True
        self.hush()

    def refuse(self) -> None:
        """Reset all lines, those too that are made from now on."""
        self.is_refusing = True
        self.cut()

    def restore(self) -> None:
        """Let new lines through again; those that were half-open are reset."""
        self.is_silent = self.is_refusing = False
        self.cut()

    def close(self) -> None:
        """Take no more calls, and drop all lines."""
        self._loop.call(self._close())

    async def _open(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _close(self) -> None:
        self._server.close()
        tasks = [task for task in self._lines.values() if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _each(self, deed: Deed) -> None:
        for line in list(self._lines):
            deed(line)

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
        line = Line(client, server)
        line.is_hushed = self.is_silent
        self._lines[line] = asyncio.current_task()
        try:
            await _Course(line, self).run()
        finally:
            del self._lines[line]
            line.cut()

    def reach(self, moment: Moment, verb: str, line: Line) -> None:
        """Carry out what is to be done at this point."""
        for point in self._points:
            if (point.moment, point.verb) == (moment, verb):
                self._points.remove(point)
                point.deed(line)
                point.is_reached.set()
                return


class _Course:
    """What goes through one line, message by message, and which verb is called."""

    def __init__(self, line: Line, proxy: Proxy) -> None:
        self._line = line
        self._proxy = proxy
        self._parsed: dict[bytes, str] = {}
        self._verb = ""
        self._held = bytearray()

    async def run(self) -> None:
        """Carry both ways until one end is gone."""
        line = self._line
        with contextlib.suppress(*_GONE):
            # The first message has no kind; a request to cancel another call is all there is then.
            length = await line.client[0].readexactly(4)
            line.ask(length + await line.client[0].readexactly(int.from_bytes(length) - 4))
            await _first_over(self._carry_questions(), self._carry_answers())

    async def _carry_questions(self) -> None:
        while True:
            message = await _message(self._line.client[0])
            kind = message[:1]
            verb = self._called(kind, message[5:])
            if verb:
                self._verb = verb
                self._proxy.reach(Moment.BEFORE, verb, self._line)
            self._line.ask(message)
            if kind in b"SQ" and self._verb:
                self._proxy.reach(Moment.AMID, self._verb, self._line)

    def _called(self, kind: bytes, body: bytes) -> str:
        """Tell which verb this message calls, if any."""
        name, _, rest = body.partition(b"\0")
        if kind == b"P":
            self._parsed[name] = _verb_in(rest)
        if kind == b"B":
            return self._parsed.get(rest.partition(b"\0")[0], "")
        return _verb_in(body) if kind == b"Q" else ""

    async def _carry_answers(self) -> None:
        while True:
            message = await _message(self._line.server[0])
            self._held += message
            # An answer is passed back whole, so that what is done after it comes before all of it.
            if not self._verb or message[:1] == b"Z":
                self._pass_back()

    def _pass_back(self) -> None:
        if self._verb:
            verb, self._verb = self._verb, ""
            self._proxy.answered[verb] += self._line.is_open
            self._proxy.reach(Moment.AFTER, verb, self._line)
        self._line.answer(bytes(self._held))
        self._held.clear()


def _verb_in(text: bytes) -> str:
    found = _VERB.search(text)
    return found[1].decode() if found else ""


async def _first_over(*ways: "collections.abc.Coroutine[None, None, None]") -> None:
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:]) - 4)
